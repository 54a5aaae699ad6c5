/* How the page's JavaScript is linted. What is undefined, unreturned or of a wrong type is
TypeScript's business (tsconfig.json). */

import js from "@eslint/js";

export default [
  { ignores: ["**/node_modules/", ".venv/", "docs/"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      "array-callback-return": "error",
      "default-case-last": "error",
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-duplicate-imports": "error",
      "no-else-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": "error",
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-use-before-define": ["error", { functions: false }],
      "no-useless-rename": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      radix: "error",
      "require-atomic-updates": "off",
    },
  },
];
