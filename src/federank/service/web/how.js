/* How this works: a page of text. */

import { prepareTexts } from "./show/texts.js";

prepareTexts();
document.documentElement.dataset.ready = "true";
