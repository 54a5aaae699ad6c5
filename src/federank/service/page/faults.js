/* Faults: what went wrong, as the sentence that a person reads. */

/** @type {(fault: unknown) => string} */
export const sentenceOf = (fault) => (fault instanceof Error ? fault.message : String(fault));
