/* How this works: a page of text. */

import { prepareTexts } from "./show/language.js";

prepareTexts();
document.documentElement.dataset.ready = "true";
