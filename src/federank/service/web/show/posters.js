/* eslint prefer-template: off -- motifs are drawn part by part, one after the other */
/* Posters: drawn here from what the catalogue says of an item (title, year, categories), the same every time. No image is loaded from
anywhere. Films and places have motifs of their own; other categories get a pattern; an item without any gets a plain tile.
*/

import { element } from "./elements.js";
import { say } from "./language.js";
import { titleOf } from "./sentences.js";

/** Colours from dark to pale, and a source of numbers below 1.
 * @typedef {{ dark: string, mid: string, bright: string, pale: string, r: () => number }} Ink */
/** @typedef {(ink: Ink) => string} Motif */

// prettier-ignore
/** Hue of the ground, hue of the figure, and how dark the ground is, by category.
 * @type {Record<string, [ground: number, figure: number, light: number]>} */
const HUES = {
  Action: [14, 38, 24], Adventure: [150, 34, 22], Animation: [196, 44, 34], Comedy: [172, 24, 30], Crime: [222, 42, 16],
  Drama: [210, 36, 24], Family: [204, 46, 36], Fantasy: [262, 286, 26], Horror: [350, 8, 14], Music: [300, 340, 24],
  Romance: [338, 14, 32], "Science Fiction": [214, 190, 18], Sport: [130, 52, 26], Thriller: [188, 66, 15],
  War: [70, 22, 20], Western: [18, 36, 30],
  "Arts & Entertainment": [280, 46, 28], "College & University": [226, 40, 28], Food: [12, 44, 36],
  "Nightlife Spot": [250, 320, 18], "Outdoors & Recreation": [140, 48, 26], "Professional & Other Places": [205, 200, 26],
  Residence: [24, 40, 32], "Shop & Service": [330, 44, 32], "Travel & Transport": [200, 30, 24],
};

/** @type {(text: string) => number} */
function hash(text) {
  let value = 2166136261;
  for (const mark of text) value = Math.imul(value ^ (mark.codePointAt(0) ?? 0), 16777619);
  return value >>> 0;
}

/** Numbers below 1, the same ones for the same seed (mulberry32).
 * @type {(seed: number) => () => number} */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @type {(count: number, draw: (index: number) => string) => string} */
const each = (count, draw) => Array.from({ length: count }, (_, index) => draw(index)).join("");
/** @type {(x: number, y: number, radius: number, fill: string, more?: string) => string} */
const disc = (x, y, radius, fill, more = "") => `<circle cx="${x}" cy="${y}" r="${radius}" fill="${fill}" ${more}/>`;
/** @type {(d: string, fill: string, more?: string) => string} */
const path = (d, fill, more = "") => `<path d="${d}" fill="${fill}" ${more}/>`;
/** @type {(d: string, stroke: string, width: number, more?: string) => string} */
const line = (d, stroke, width, more = "") =>
  `<path d="${d}" fill="none" stroke="${stroke}" stroke-width="${width}" stroke-linecap="round" ${more}/>`;
/** @type {(ink: Ink, count: number, low: number) => string} */
const stars = ({ pale, r }, count, low) => each(count, () => disc(r() * 200, r() * low, 0.7 + r(), pale));
/** @type {(ink: Ink, height: number, fill: string) => string} */
const hills = ({ r }, height, fill) =>
  path(`M-5 310V${height}Q45 ${height - 40 - r() * 30} 100 ${height}T205 ${height - 10 - r() * 20}V310Z`, fill);
/** @type {(x: number, y: number, size: number, fill: string) => string} */
const figure = (x, y, size, fill) =>
  disc(x, y, size * 0.28, fill) +
  path(
    `M${x - size * 0.5} ${y + size * 2}q0-${size * 1.6} ${size * 0.5}-${size * 1.6}t${size * 0.5} ${size * 1.6}z`,
    fill,
  );

// prettier-ignore
/** @type {Record<string, Motif[]>} */
const MOTIFS = {
  Action: [
    ({ bright, pale, r }) => {
      const [x, y] = [70 + r() * 60, 110 + r() * 20];
      return each(14, (i) => {
        const [a, b] = [(i * Math.PI) / 7 + r() * 0.2, (i * Math.PI) / 7 + 0.16];
        const far = 90 + r() * 70;
        const at = (/** @type {number} */ angle) => `${x + far * Math.cos(angle)} ${y + far * Math.sin(angle)}`;
        return path(`M${x} ${y}L${at(a)}L${at(b)}Z`, i % 3 ? bright : pale, 'opacity=".85"');
      }) + disc(x, y, 26, pale);
    },
    ({ mid, bright, pale, r }) =>
      each(5, (i) => path(`M-20 ${250 - i * 44}L100 ${190 - i * 44 - r() * 8}L220 ${250 - i * 44}v22L100 ${212 - i * 44}L-20 ${272 - i * 44}Z`, [bright, mid, pale][i % 3], `opacity="${0.95 - i * 0.14}"`)),
    ({ bright, pale, r }) => disc(100, 128, 62, "none", `stroke="${bright}" stroke-width="7"`) + disc(100, 128, 36, "none", `stroke="${pale}" stroke-width="3"`) + line("M100 40v58M100 158v58M12 128h58M130 128h58", pale, 4) + disc(100, 128, 6 + r() * 5, bright),
    ({ bright, pale, mid, r }) => path(`M${108 + r() * 20} 26L52 146H96L${70 + r() * 16} 250L158 112H110L142 26Z`, bright) + line("M20 70h30M14 190h36M150 200h36", pale, 4) + disc(30, 40, 5, mid),
    ({ bright, dark, pale, mid, r }) => path("M-5 310L86 120H114L205 310Z", dark) + line("M100 136v20M100 176v28M100 228v40", pale, 4) + disc(100, 104, 34 + r() * 12, bright) + each(5, (i) => line(`M${-10 + i * 8} ${130 + i * 22}h${40 - i * 4}M${210 - i * 8} ${130 + i * 22}h${-40 + i * 4}`, mid, 3)),
    ({ bright, mid, dark, pale, r }) => each(7, (i) => { const high = 40 + r() * 90; return `<rect x="${i * 30 - 4}" y="${250 - high}" width="27" height="${high + 60}" fill="${i % 2 ? dark : mid}"/>`; }) + each(6, () => disc(70 + r() * 60, 120 + r() * 50, 14 + r() * 20, bright, 'opacity=".75"')) + disc(100, 140, 20, pale),
  ],
  Adventure: [
    ({ dark, mid, bright, r }) =>
      disc(60 + r() * 80, 80, 30, bright) + path(`M-10 240L58 ${112 + r() * 24}L104 190L148 ${100 + r() * 26}L215 240V310H-10Z`, mid) + path("M-10 310V246L70 196L136 240L215 206V310Z", dark),
    ({ mid, bright, pale, r }) =>
      disc(100, 122, 66, mid) + disc(100, 122, 58, "none", `stroke="${pale}" stroke-width="2"`) +
      `<g transform="rotate(${r() * 180} 100 122)">${path("M100 66L113 122H87Z", bright)}${path("M100 178L113 122H87Z", pale)}</g>`,
  ],
  Animation: [
    ({ bright, pale, mid, r }) =>
      each(7, (i) => {
        const [x, y, size] = [30 + r() * 140, 46 + r() * 90, 13 + r() * 17];
        return line(`M${x} ${y + size}Q100 190 100 246`, pale, 1, 'opacity=".6"') + `<ellipse cx="${x}" cy="${y}" rx="${size}" ry="${size * 1.2}" fill="${[bright, pale, mid][i % 3]}"/>`;
      }),
    ({ dark, bright, pale, r }) => {
      const look = r() * 14 - 7;
      return `<ellipse cx="100" cy="180" rx="${78 + r() * 14}" ry="104" fill="${bright}"/>` +
        [66, 134].map((x) => disc(x, 130, 27, pale) + disc(x + look, 134, 12, dark) + disc(x + look + 4, 129, 4, pale)).join("") +
        line(`M70 190q30 ${16 + r() * 16} 60 0`, dark, 5);
    },
  ],
  Comedy: [
    ({ bright, pale, mid, r }) =>
      each(34, (i) => {
        const [x, y] = [r() * 200, r() * 225];
        return `<rect x="${x}" y="${y}" width="${7 + r() * 15}" height="${5 + r() * 5}" rx="2" fill="${[bright, pale, mid][i % 3]}" transform="rotate(${r() * 180} ${x} ${y})"/>`;
      }),
    ({ dark, bright, r }) =>
      disc(100, 126, 70, bright) + disc(74, 112, 8, dark) + disc(126, 112, 8, dark) + path(`M62 138q38 ${46 + r() * 20} 76 0z`, dark),
    ({ bright, pale, mid }) => each(9, (i) => path(`M100 130L${-60 + i * 40} -20L${-40 + i * 40} -20Z M100 130L${-60 + i * 40} 320L${-40 + i * 40} 320Z`, [bright, mid][i % 2], 'opacity=".5"')) + disc(100, 130, 34, pale),
  ],
  Crime: [
    ({ mid, bright, r }) => each(10, (i) => `<rect x="-60" y="${i * 24}" width="320" height="11" fill="${mid}" transform="rotate(${-12 + r()} 100 130)"/>`) + figure(100, 118, 62, bright),
    ({ mid, bright, pale, r }) =>
      disc(40 + r() * 120, 54, 20, pale) +
      each(8, (i) => {
        const high = 60 + r() * 120;
        return `<rect x="${i * 26}" y="${240 - high}" width="24" height="${high + 70}" fill="${mid}"/>` +
          each(8, () => `<rect x="${i * 26 + 4 + Math.floor(r() * 3) * 6}" y="${246 - high + Math.floor(r() * 9) * 11}" width="4" height="6" fill="${bright}"/>`);
      }),
    ({ dark, bright, mid, r }) => disc(100, 104, 44, bright) + path(`M84 120h32l${14 + r() * 10} 116H${70 - r() * 10}Z`, bright) + disc(100, 104, 30, dark) + path("M88 116h24l8 106H80Z", dark) + line("M30 40h24M150 40h22M24 250h30", mid, 5),
    ({ bright, dark, pale, r }) => `<g transform="rotate(${-14 + r() * 28} 100 130)"><rect x="46" y="48" width="108" height="156" rx="10" fill="${pale}"/>` + [path("M100 80C60 120 62 148 84 150c10 0 14-6 16-12 2 6 6 12 16 12 22-2 24-30-16-70zM92 166h16l-5-24h-6z", dark), path("M100 72L138 126L100 180L62 126Z", "#b02a37"), disc(100, 102, 21, dark) + disc(78, 132, 21, dark) + disc(122, 132, 21, dark) + path("M90 174h20l-6-44h-8z", dark), path("M100 174C40 128 58 84 82 84c10 0 16 8 18 14 2-6 8-14 18-14 24 0 42 44-18 90z", "#b02a37")][Math.floor(r() * 4)] + disc(62, 66, 6, bright) + "</g>",
    ({ dark, bright, r }) => path(`M-20 250L${70 + r() * 50} -20H${150 + r() * 30}L220 260Z`, bright, 'opacity=".9"') + figure(112, 150, 44, dark),
  ],
  Drama: [
    ({ dark, mid, bright, r }) => {
      const x = 34 + r() * 44;
      return `<rect x="${x}" y="46" width="92" height="146" fill="${bright}"/>` + line(`M${x + 46} 46v146M${x} 118h92`, dark, 5) + path(`M-5 252L205 ${214 + r() * 18}V310H-5Z`, mid);
    },
    (ink) => disc(100, 108 + ink.r() * 18, 56, ink.bright) + hills(ink, 176, ink.mid) + hills(ink, 226, ink.dark),
    (ink) => hills(ink, 222, ink.mid) + line("M128 214V134", ink.dark, 7) + each(11, () => disc(98 + ink.r() * 62, 76 + ink.r() * 58, 13 + ink.r() * 12, ink.bright, 'opacity=".9"')),
    ({ mid, bright, pale, r }) => each(8, (i) => line(`M-10 ${70 + i * 22}q28 ${-16 - r() * 14} 56 0t56 0t56 0t56 0`, [bright, mid, pale][i % 3], 7, `opacity="${0.9 - i * 0.07}"`)),
  ],
  Family: [
    (ink) => disc(150, 66, 26, ink.pale) + hills(ink, 214, ink.mid) + path("M60 214V150L100 112L140 150V214Z", ink.bright) + `<rect x="90" y="176" width="20" height="38" fill="${ink.dark}"/>`,
    (ink) => hills(ink, 220, ink.dark) + path("M120 40L156 90L118 146L84 88Z", ink.bright) + line("M84 88L156 90M120 40L118 146", ink.dark, 2) + line(`M118 146q-40 30-14 56t-30 44`, ink.pale, 2),
  ],
  Fantasy: [
    (ink) => stars(ink, 24, 180) + disc(144, 66, 24, ink.pale) + path("M46 250V150h12v14h12v-40h14v-34l8-24 8 24v34h14v40h12v-14h12V250Z", ink.dark) + hills(ink, 240, ink.mid),
    (ink) => `<g transform="rotate(${ink.r() * 36} 100 112)">${path("M100 36l17 52h55l-44 32 17 52-45-32-45 32 17-52-44-32h55z", ink.bright)}</g>` + stars(ink, 20, 220),
  ],
  Horror: [
    ({ dark, bright, r }) => disc(60 + r() * 80, 84, 38 + r() * 12, bright) + path(`M-5 310V206${each(9, (i) => `L${i * 25 + 12} ${142 + r() * 60}L${i * 25 + 25} ${204 + r() * 24}`)}V310Z`, dark),
    ({ dark, pale, bright }) => path("M100 44C150 44 168 88 160 126c-4 22-18 26-18 44H58c0-18-14-22-18-44C32 88 50 44 100 44z", pale) + disc(77, 112, 16, dark) + disc(123, 112, 16, dark) + disc(80, 114, 4, bright) + disc(120, 114, 4, bright) + path("M100 130l9 20H91z", dark),
    ({ dark, bright, mid, r }) => `<rect x="62" y="56" width="76" height="190" fill="${bright}"/>` + path("M62 246L20 310H180L138 246Z", mid) + figure(100, 132 + r() * 10, 34, dark),
  ],
  Music: [
    ({ dark, bright, pale }) => disc(100, 126, 74, dark) + [62, 52, 42].map((radius) => disc(100, 126, radius, "none", `stroke="${bright}" stroke-opacity=".5" stroke-width="2"`)).join("") + disc(100, 126, 26, bright) + disc(100, 126, 5, pale),
    ({ bright, pale, mid, r }) => each(11, (i) => { const high = 24 + r() * 150; return `<rect x="${10 + i * 17}" y="${214 - high}" width="11" height="${high}" rx="5" fill="${[bright, pale, mid][i % 3]}"/>`; }),
  ],
  Romance: [
    ({ bright, pale, r }) => disc(80 - r() * 10, 122, 52, bright, 'opacity=".92"') + disc(122 + r() * 10, 140, 52, pale, 'opacity=".6"'),
    ({ bright, dark, r }) => `<g transform="rotate(${-10 + r() * 20} 100 130)">${path("M100 200C18 142 32 68 78 68c16 0 22 12 22 18 0-6 6-18 22-18 46 0 60 74-22 132z", bright)}</g>` + path(`M-10 244Q100 ${198 + r() * 20} 210 244V310H-10Z`, dark, 'opacity=".6"'),
    ({ bright, pale, dark, r }) => each(22, () => { const x = r() * 200, y = r() * 200; return line(`M${x} ${y}l-5 16`, pale, 1.5, 'opacity=".55"'); }) + path("M48 140a52 52 0 0 1 104 0z", bright) + line("M100 140v78q0 12 12 12", dark, 5) + figure(88, 160, 30, dark) + figure(114, 164, 27, dark),
  ],
  "Science Fiction": [
    (ink) => stars(ink, 26, 230) + disc(100, 126, 36 + ink.r() * 14, ink.bright) + each(3, (i) => `<ellipse cx="100" cy="126" rx="${62 + i * 20}" ry="${12 + i * 8}" transform="rotate(${-26 + ink.r() * 14} 100 126)" fill="none" stroke="${ink.pale}" stroke-opacity="${0.7 - i * 0.18}" stroke-width="1.8"/>`),
    ({ bright, pale, r }) => each(9, (i) => line(`M100 118L${-60 + i * 40} 320`, bright, 1.2, 'opacity=".7"')) + each(7, (i) => line(`M-10 ${126 + i * i * 5}H210`, bright, 1.2, 'opacity=".7"')) + disc(100, 84, 28 + r() * 14, pale),
    (ink) => stars(ink, 18, 150) + path(`M100 92L${40 - ink.r() * 20} 260H${160 + ink.r() * 20}Z`, ink.pale, 'opacity=".35"') + `<ellipse cx="100" cy="88" rx="56" ry="15" fill="${ink.bright}"/><ellipse cx="100" cy="78" rx="24" ry="17" fill="${ink.mid}"/>` + figure(100, 196, 22, ink.dark),
    ({ dark, bright, pale, r }) => disc(100, 240, 110 + r() * 20, bright, 'opacity=".8"') + `<rect x="78" y="70" width="44" height="120" fill="${dark}"/>` + disc(100, 48, 8, pale),
  ],
  Sport: [({ bright, pale, mid }) => each(6, (i) => line(`M${-40 + i * 26} 320Q${40 + i * 22} 120 ${230} ${40 + i * 30}`, [pale, bright, mid][i % 3], 6)), ({ bright, pale, dark }) => disc(100, 122, 58, bright) + line("M42 122h116M100 64v116M58 82q42 40 84 0M58 162q42-40 84 0", dark, 3) + disc(100, 122, 58, "none", `stroke="${pale}" stroke-width="3"`)],
  Thriller: [
    ({ bright, dark, pale, r }) => path("M16 124Q100 44 184 124Q100 204 16 124Z", pale) + disc(100, 124, 38, bright) + disc(100, 124, 15 + r() * 6, dark) + disc(108, 114, 5, pale),
    ({ bright, mid, r }) => { const x = 84 + r() * 32; return each(11, (i) => disc(x, 124, 10 + i * 11, "none", `stroke="${i % 2 ? mid : bright}" stroke-width="4" stroke-dasharray="${30 + r() * 60} ${8 + r() * 10}"`)); },
    ({ bright, pale, mid, r }) => each(9, (i) => line(`M${100 + (r() - 0.5) * 30} ${120 + (r() - 0.5) * 20}L${100 + 160 * Math.cos(i * 0.7)} ${120 + 160 * Math.sin(i * 0.7)}`, i % 2 ? pale : bright, 1.6)) + disc(100, 120, 16, mid) + disc(100, 120, 9, bright),
    ({ dark, bright, mid, r }) => each(7, (i) => path(`M${10 + i * 22} ${236 - i * 26}h22v26h-22zM${10 + i * 22} ${262 - i * 26}h190v30h-190z`, i % 2 ? mid : dark)) + figure(120 + r() * 30, 62, 20, bright),
  ],
  War: [
    (ink) => disc(100, 130, 46, ink.bright) + each(7, () => { const x = ink.r() * 190, y = 30 + ink.r() * 80; return path(`M${x} ${y}a9 9 0 0 1 18 0z`, ink.pale) + line(`M${x} ${y}l9 14l9-14`, ink.pale, 0.8); }) + hills(ink, 214, ink.dark),
    ({ bright, dark, mid, r }) => each(5, (i) => disc(30 + i * 36 + r() * 14, 90 + r() * 90, 17, bright) + disc(32 + i * 36, 132, 0, mid)) + each(16, (i) => line(`M${i * 13} 300q${r() * 10 - 5}-60 ${r() * 16 - 8} ${-110 - r() * 30}`, dark, 2)),
  ],
  Western: [
    ({ dark, bright, r }) => disc(60 + r() * 80, 122, 46, bright) + path("M-5 226h44v-48h38v48h30v-78h46v78h92v90H-5Z", dark),
    ({ dark, mid, bright, r }) => disc(100, 150, 70, bright) + path(`M-5 210Q100 ${186 + r() * 16} 205 210V310H-5Z`, mid) + line("M128 216V128M128 176h-20v-24M128 164h20v-18", dark, 11),
  ],
  "Arts & Entertainment": [({ bright, pale, dark }) => path("M40 60H160V150Q100 210 40 150Z", bright) + disc(76, 104, 9, dark) + disc(124, 104, 9, dark) + path("M70 140q30 30 60 0z", pale)],
  "College & University": [({ bright, pale, mid }) => path("M100 60L180 100H20Z", bright) + each(5, (i) => `<rect x="${34 + i * 30}" y="108" width="12" height="80" fill="${pale}"/>`) + `<rect x="22" y="192" width="156" height="14" fill="${mid}"/>`],
  Food: [({ bright, pale, mid, r }) => disc(100, 130, 62, pale) + disc(100, 130, 44, bright) + each(6, () => disc(76 + r() * 48, 106 + r() * 48, 5 + r() * 5, mid)), ({ bright, pale, r }) => path("M50 110H150L140 200H60Z", bright) + line("M150 126q34 4 26 34t-34 24", bright, 9) + each(3, (i) => line(`M${76 + i * 24} 92q${8 + r() * 6}-14 0-28`, pale, 4))],
  "Nightlife Spot": [(ink) => stars(ink, 20, 200) + path("M52 70H148L100 136Z", ink.bright) + line("M100 136V206M72 206h56", ink.bright, 6) + disc(118, 86, 9, ink.pale)],
  "Outdoors & Recreation": [(ink) => hills(ink, 220, ink.mid) + each(4, (i) => line(`M${40 + i * 40} 226v-30`, ink.dark, 6) + path(`M${40 + i * 40} ${90 + ink.r() * 20}l24 106h-48z`, ink.bright)) + disc(150, 60, 20, ink.pale)],
  "Professional & Other Places": [({ bright, pale, r }) => each(4, (i) => { const high = 80 + r() * 90; return `<rect x="${22 + i * 40}" y="${230 - high}" width="34" height="${high + 80}" fill="${bright}"/>` + each(6, (j) => `<rect x="${30 + i * 40 + (j % 2) * 12}" y="${242 - high + Math.floor(j / 2) * 20}" width="7" height="10" fill="${pale}"/>`); })],
  Residence: [(ink) => path("M40 220V130L100 76L160 130V220Z", ink.bright) + `<rect x="88" y="170" width="24" height="50" fill="${ink.dark}"/><rect x="60" y="140" width="22" height="22" fill="${ink.pale}"/><rect x="118" y="140" width="22" height="22" fill="${ink.pale}"/>`],
  "Shop & Service": [({ bright, pale }) => path("M52 100H148L158 216H42Z", bright) + line("M74 120V86a26 26 0 0 1 52 0v34", pale, 6)],
  "Travel & Transport": [({ bright, pale, mid }) => path("M70 310L96 120H104L130 310Z", mid) + line("M100 140v30M100 190v34M100 244v40", pale, 4) + disc(100, 90, 34, bright)],
};

/** Shapes in a pattern of the category's own, where there is no motif for it.
 * @type {(category: string) => Motif} */
const patternOf = (category) => {
  const kind = hash(category) % 3;
  return ({ bright, mid, pale, r }) =>
    each(24, (i) => {
      const [x, y, fill] = [24 + (i % 4) * 50, 24 + Math.floor(i / 4) * 40, [bright, mid, pale][Math.floor(r() * 3)]];
      if (kind === 0) return disc(x, y, 8 + r() * 14, fill, 'opacity=".8"');
      if (kind === 1)
        return path(`M${x - 25} ${y + 20}L${x} ${y - 20}L${x + 25} ${y + 20}Z`, fill, `opacity="${0.3 + r() * 0.6}"`);
      return `<rect x="${x - 22}" y="${y - 17}" width="44" height="34" rx="${r() * 17}" fill="${fill}" opacity="${0.3 + r() * 0.6}"/>`;
    });
};

/** @type {Record<string, string>} */
const FONTS = {
  serif: "Georgia,'Times New Roman','Noto Serif',serif",
  narrow: "'Arial Narrow','Roboto Condensed','Liberation Sans Narrow',Arial,sans-serif",
  plain: "ui-sans-serif,system-ui,'Segoe UI',Roboto,'Noto Sans',sans-serif",
};
/** What is so common that it says little of an item: how often it is drawn all the same.
 * @type {Record<string, number>} */
const COMMON = { Action: 0.4, Drama: 0.25, Comedy: 0.6 };
const SERIF = new Set(["Drama", "Romance", "War", "Fantasy", "Western", "Horror"]);

/** @type {(text: string) => string} */
const escaped = (text) => text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);

/** A title in lines of about so many letters; what is too long for four lines ends in an ellipsis.
 * @type {(title: string) => string[]} */
function linesOf(title) {
  /** @type {string[]} */
  const lines = [];
  const wide = title.length > 36 ? 15 : 11;
  for (const word of title.split(/\s+/)) {
    const last = lines.length - 1;
    if (last >= 0 && `${lines[last]} ${word}`.length <= wide) lines[last] += ` ${word}`;
    else lines.push(word.length > 20 ? `${word.slice(0, 19)}…` : word);
  }
  return lines.length > 5 ? [...lines.slice(0, 4), `${lines[4]}…`] : lines;
}

/** @type {(item: { title: string, year: number | null, categories: string[] }, name: string) => string} */
export function drawnPoster({ title, year, categories }, name) {
  const seed = hash(`${title} ${year ?? ""}`);
  const r = numbers(seed);
  const known = categories.filter((category) => category in MOTIFS);
  // The rarer of an item's kinds says more: a drama that is also a war film is drawn as one.
  const main = known.find((category) => r() < (COMMON[category] ?? 0.8)) ?? known[0] ?? categories[0] ?? "";
  const [ground, accent, light] = HUES[main] ?? [hash(main || title) % 360, (hash(main || title) + 40) % 360, 28];
  const turn = Math.round((r() - 0.5) * (main === "Action" ? 90 : 56));
  const old = year !== null && year < 1970 ? 0.62 : 1; // faded ink
  /** @type {(hue: number, part: number, level: number) => string} */
  const hsl = (hue, part, level) => `hsl(${(hue + turn + 360) % 360} ${Math.round(part * old)}% ${Math.round(level)}%)`;
  const ink = {
    dark: hsl(ground, 46, light * 0.42),
    mid: hsl(ground, 42, light + 6),
    bright: hsl(accent, 82, 58),
    pale: hsl(accent, 60, 88),
    r,
  };
  const ways = MOTIFS[main] ?? (main ? [patternOf(main)] : []);
  const shape = ways.length ? ways[Math.floor(r() * ways.length)](ink) : "";
  const motif = shape && seed % 2 ? `<g transform="matrix(-1 0 0 1 200 0)">${shape}</g>` : shape; // half of them mirrored
  const serif = SERIF.has(main) && seed % 3 !== 0;
  const text = serif ? name : name.toUpperCase();
  const lines = linesOf(text);
  const longest = Math.max(...lines.map((part) => part.length));
  const size = Math.min(motif ? 29 : 34, 176 / (longest * (serif ? 0.68 : 0.82))); // wide fonts too
  const top = !motif; // a title over a motif is hard to read: there it stands on the darkened part below
  const first = top ? 24 + size : 288 - (lines.length - 1) * size * 1.04;
  const font = serif ? FONTS.serif : seed % 2 ? FONTS.narrow : FONTS.plain;
  const words = lines
    .map((part, index) => `<text x="12" y="${(first + index * size * 1.04).toFixed(1)}">${escaped(part)}</text>`)
    .join("");
  const yearAt = top ? 288 : 24;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 300" preserveAspectRatio="xMidYMid slice"><defs>` +
    `<linearGradient id="g" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="${hsl(ground, 52, light + 10)}"/><stop offset="1" stop-color="${ink.dark}"/></linearGradient>` +
    `<linearGradient id="s" x1="0" y1="1" x2="0" y2="0"><stop offset=".08" stop-color="${ink.dark}" stop-opacity=".94"/><stop offset=".46" stop-color="${ink.dark}" stop-opacity="0"/></linearGradient></defs>` +
    `<rect width="200" height="300" fill="url(#g)"/>${motif}${motif ? '<rect width="200" height="300" fill="url(#s)"/>' : ""}` +
    (year
      ? `<text x="12" y="${yearAt}" font-size="12" letter-spacing="2" fill="${ink.pale}" font-family="${FONTS.plain}">${year}</text>`
      : "") +
    `<g fill="${motif ? "#fff" : ink.pale}" font-size="${size.toFixed(1)}" font-weight="${serif ? 700 : 800}" letter-spacing="-.3" font-family="${font}">${words}</g></svg>`
  );
}

/** A poster as an image without words of its own: what it shows is said beside it.
 * @type {(item: ShownItem) => HTMLElement} */
export const poster = (item) =>
  element("img", {
    class: "poster",
    alt: "",
    width: 200,
    height: 300,
    decoding: "async",
    draggable: "false",
    src: `data:image/svg+xml,${encodeURIComponent(drawnPoster(item, titleOf(item).name))}`,
  });

/** @type {(item: ShownItem, press: (event: any) => unknown, attributes?: Attributes, ...children: Child[]) => HTMLElement} */
export function tile(item, press, attributes = {}, ...children) {
  const { name: title, lang } = titleOf(item);
  const label = item.year ? say("title-year", { title, year: String(item.year) }) : title;
  const usual = { type: "button", class: "tile", lang, "aria-label": label };
  return element("button", { ...usual, ...attributes, on: { click: press } }, poster(item), ...children);
}

/** @type {(items: ShownItem[], most: number, attributes?: Attributes) => HTMLElement} */
export const smallPosters = (items, most, attributes = {}) =>
  element(
    "span",
    { class: "small-posters", ...attributes },
    ...items.slice(0, most).map(poster),
    items.length > most ? element("small", {}, `+${items.length - most}`) : null,
  );
