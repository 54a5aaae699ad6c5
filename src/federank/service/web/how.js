/* What leaves, and what it tells: a page of words alone. */

import { prepareTexts } from "./show/texts.js";

prepareTexts();
document.documentElement.dataset.ready = "true";
