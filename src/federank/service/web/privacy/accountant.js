/* The accountant (privacy/accountant.py): what messages under noise disclose together, as one number.

Messages of length at most C under noise of deviation s_1 C, s_2 C, ... disclose as much as one Gaussian mechanism of
mu = sqrt(1 / s_1^2 + 1 / s_2^2 + ...), and at epsilon its smallest delta is

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)
*/

/** What messages under noise of n times their largest length disclose together, as one Gaussian mechanism.
 * @type {(sigmas: number[]) => number} */
export const muOfNoise = (sigmas) => Math.sqrt(sigmas.reduce((sum, sigma) => sum + sigma ** -2, 0));

/** The logarithm of the normal distribution function, also far out where the function itself is zero.
 * @type {(x: number) => number} */
function logNormal(x) {
  if (x > 3) return Math.log1p(-Math.exp(logNormal(-x)));
  const density = -0.5 * x * x - 0.5 * Math.log(2 * Math.PI);
  if (x < -3) {
    // Laplace's continued fraction: x + 1 / (x + 2 / (x + 3 / ...)).
    let fraction = -x;
    for (let k = 120; k > 0; k--) fraction = -x + k / fraction;
    return density - Math.log(fraction);
  }
  // Phi(x) = 1/2 + density (x + x^3 / 3 + x^5 / 15 + ...)
  let [term, sum] = [x, x];
  for (let k = 3; Math.abs(term) > 1e-18 * Math.abs(sum); k += 2) sum += term *= (x * x) / k;
  return Math.log(0.5 + Math.exp(density) * sum);
}

/** The smallest delta that is true of a Gaussian mechanism at this epsilon.
 * @type {(mu: number, epsilon: number) => number} */
function deltaOfMu(mu, epsilon) {
  const [first, second] = [logNormal(mu / 2 - epsilon / mu), logNormal(-mu / 2 - epsilon / mu)];
  return Math.exp(first) * -Math.expm1(Math.min(0, epsilon + second - first));
}

/** The smallest epsilon that is true of a Gaussian mechanism at this delta; 0 for no mechanism at all.
 * @type {(mu: number, delta: number) => number} */
export function epsilonOfMu(mu, delta) {
  if (mu === 0 || deltaOfMu(mu, 0) <= delta) return 0;
  let [low, high] = [0, (mu * mu) / 2 + mu * Math.sqrt(2 * Math.log(1 / delta))];
  for (;;) {
    const middle = (low + high) / 2;
    if (!(low < middle && middle < high)) return high;
    if (deltaOfMu(mu, middle) > delta) low = middle;
    else high = middle;
  }
}
