"""SciPy on tensors, with SCIPY_ARRAY_API=1: special, fft, linalg, cluster and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .clients import DTYPES, by_views, compare, names, refused, require_scipy_switch

if TYPE_CHECKING:
    from .clients import Call

pytest.importorskip("scipy")
require_scipy_switch()

from scipy import (  # noqa: E402  # not before the switch was seen
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    special,
)
from scipy.cluster import hierarchy, vq  # noqa: E402
from scipy.optimize import elementwise  # noqa: E402
from scipy.spatial import distance  # noqa: E402

# Functions of one real number, elementwise, where the numbers are positive.
UNARY = names("""
cbrt cosdg cosm1 cotdg digamma ellipk ellipkm1 entr erf erfc erfcx exp1 exp10 exp2 expi expit
exprel gamma gammaln gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log_ndtr log_softmax loggamma
logsumexp ndtr psi rgamma sinc sindg softmax spence tandg y0 y1 zetac
""")
# Those of numbers between 0 and 1.
UNIT = names("erfinv logit ndtri ellipk ellipkm1 entr")
BINARY = names("""
betaln binom boxcox boxcox1p chdtr chdtrc gammainc gammaincc huber inv_boxcox inv_boxcox1p
kl_div pdtr pdtrc poch pseudo_huber rel_entr stdtr xlog1py xlogy zeta
""")
SPECIAL: dict[str, Call] = {
    **{name: lambda g, name=name: getattr(special, name)(g.x) for name in UNARY},
    **{f"{name} of [0,1]": lambda g, name=name: getattr(special, name)(g.p) for name in UNIT},
    **{name: lambda g, name=name: getattr(special, name)(g.x, g.x + 0.5) for name in BINARY},
    "bdtr": lambda g: special.bdtr(g.array([1.0, 2.0]), g.ints([5, 6]), g.array([0.3, 0.6])),
    "bdtrc": lambda g: special.bdtrc(g.array([1.0, 2.0]), g.ints([5, 6]), g.array([0.3, 0.6])),
    "bdtri": lambda g: special.bdtri(g.array([1.0, 2.0]), g.ints([5, 6]), g.array([0.3, 0.6])),
    "betainc": lambda g: special.betainc(g.p + 1, g.p + 2, g.p),
    "betaincc": lambda g: special.betaincc(g.p + 1, g.p + 2, g.p),
    "betaincinv": lambda g: special.betaincinv(g.p + 1, g.p + 2, g.p),
    "chdtri": lambda g: special.chdtri(g.p + 1, g.p),
    "expn": lambda g: special.expn(g.ints([2, 3]), g.array([0.5, 1.5])),
    "fdtr": lambda g: special.fdtr(g.p + 1, g.p + 2, g.p),
    "fdtrc": lambda g: special.fdtrc(g.p + 1, g.p + 2, g.p),
    "fdtri": lambda g: special.fdtri(g.p + 1, g.p + 2, g.p),
    "gammainccinv": lambda g: special.gammainccinv(g.p + 1, g.p),
    "gammaincinv": lambda g: special.gammaincinv(g.p + 1, g.p),
    "gdtr": lambda g: special.gdtr(g.p + 1, g.p + 2, g.p),
    "gdtrc": lambda g: special.gdtrc(g.p + 1, g.p + 2, g.p),
    "hyp1f1": lambda g: special.hyp1f1(g.p + 1, g.p + 2, g.p),
    "log_softmax along an axis": lambda g: special.log_softmax(g.x, axis=1),
    "logsumexp along an axis": lambda g: special.logsumexp(g.x, axis=1),
    "logsumexp with weights and signs": lambda g: special.logsumexp(
        g.x, axis=0, b=g.x - 1, return_sign=True
    ),
    "lpmv": lambda g: special.lpmv(g.ints([1, 2]), g.array([2.0, 3.0]), g.array([0.1, 0.5])),
    "multigammaln": lambda g: special.multigammaln(g.x + 3, 2),
    "nbdtr": lambda g: special.nbdtr(g.ints([2, 3]), g.ints([4, 5]), g.array([0.3, 0.6])),
    "pdtri": lambda g: special.pdtri(g.ints([2, 3]), g.array([0.3, 0.6])),
    "polygamma": lambda g: special.polygamma(g.ints([1, 2]), g.array([0.5, 1.5])),
    "radian": lambda g: special.radian(g.x, g.x, g.x),
    "softmax along an axis": lambda g: special.softmax(g.x, axis=1),
    "stdtrit": lambda g: special.stdtrit(g.p + 3, g.p),
    "yn": lambda g: special.yn(g.ints([2, 3]), g.array([0.5, 1.5])),
}
COMPLEX = names("fft ifft fft2 ifft2 fftn ifftn hfft hfft2 hfftn irfft irfft2 irfftn")
FFT: dict[str, Call] = {
    **{f"fft.{name}": lambda g, name=name: getattr(fft, name)(g.x) for name in COMPLEX},
    **{
        f"fft.{name}": lambda g, name=name: getattr(fft, name)(g.x)
        for name in names(
            "rfft rfft2 rfftn ihfft ihfft2 ihfftn dct dctn dst dstn idct idctn idst idstn "
            "fftshift ifftshift"
        )
    },
    **{
        f"fft.dct type {kind}": lambda g, kind=kind: fft.dct(g.x, type=kind, axis=0, norm="ortho")
        for kind in (1, 2, 3, 4)
    },
    "fft.fft padded": lambda g: fft.fft(g.x, n=9, axis=0, norm="ortho"),
    "fft.fft of complex": lambda g: fft.fft(fft.fft(g.x)),
    "fft.rfft cut": lambda g: fft.rfft(g.v, n=20, norm="forward"),
    "fft.rfft and back": lambda g: fft.irfft(fft.rfft(g.v), n=50),
    "fft.fht": lambda g: fft.fht(g.x[0, :], 0.1, 0.5),
    "fft.ifht": lambda g: fft.ifht(g.x[0, :], 0.1, 0.5),
}
LINALG: dict[str, Call] = {
    "linalg.block_diag": lambda g: linalg.block_diag(g.x, g.square, g.v),
    "linalg.fiedler": lambda g: linalg.fiedler(g.v),
    "linalg.orthogonal_procrustes": lambda g: linalg.orthogonal_procrustes(g.square, g.symmetric),
}
HOST_LINALG = names("""
cho_factor cholesky cosm det eigh eigvals eigvalsh expm hessenberg inv ldl logm lu lu_factor
norm null_space orth pinv polar qr schur sinm sqrtm svd svdvals tanm
""")
ONTO_HOST: dict[str, Call] = {
    **{
        f"linalg.{name}": lambda g, name=name: getattr(linalg, name)(g.symmetric)
        for name in HOST_LINALG
    },
    "linalg.solve": lambda g: linalg.solve(g.square, g.symmetric),
    "linalg.lstsq": lambda g: linalg.lstsq(g.points, g.points[:, 0]),
    "linalg.solve_triangular": lambda g: linalg.solve_triangular(g.square, g.symmetric),
    "linalg.toeplitz": lambda g: linalg.toeplitz(g.v),
    "linalg.circulant": lambda g: linalg.circulant(g.v),
    "linalg.khatri_rao": lambda g: linalg.khatri_rao(g.square, g.symmetric),
}


def _tree(g):
    return hierarchy.linkage(g.points, "average")


CLUSTER: dict[str, Call] = {
    "vq.whiten": lambda g: vq.whiten(g.points),
    "vq.vq": lambda g: vq.vq(g.points, g.points[:3, :]),
    "vq.kmeans": lambda g: vq.kmeans(g.points, g.points[::15, :]),
    "vq.kmeans of a number": lambda g: vq.kmeans(g.points, 3, rng=0),
    "vq.kmeans2": lambda g: vq.kmeans2(g.points, g.points[::15, :], minit="matrix"),
    "vq.kmeans2 ++": lambda g: vq.kmeans2(g.points, 3, minit="++", rng=0),
    **{
        f"hierarchy.{name}": lambda g, name=name: getattr(hierarchy, name)(g.points)
        for name in names("average centroid complete median single ward weighted")
    },
    "hierarchy.cophenet": lambda g: hierarchy.cophenet(_tree(g)),
    "hierarchy.correspond": lambda g: hierarchy.correspond(_tree(g), distance.pdist(g.points)),
    "hierarchy.dendrogram": lambda g: hierarchy.dendrogram(_tree(g), no_plot=True)["leaves"],
    "hierarchy.fcluster": lambda g: hierarchy.fcluster(_tree(g), 3, "maxclust"),
    "hierarchy.fcluster by distance": lambda g: hierarchy.fcluster(_tree(g), 3.0, "distance"),
    "hierarchy.fclusterdata": lambda g: hierarchy.fclusterdata(g.points, 3, "maxclust"),
    "hierarchy.inconsistent": lambda g: hierarchy.inconsistent(_tree(g)),
    "hierarchy.is_monotonic": lambda g: hierarchy.is_monotonic(_tree(g)),
    "hierarchy.is_valid_linkage": lambda g: hierarchy.is_valid_linkage(_tree(g)),
    "hierarchy.is_valid_im": lambda g: hierarchy.is_valid_im(hierarchy.inconsistent(_tree(g))),
    "hierarchy.is_isomorphic": lambda g: hierarchy.is_isomorphic(
        g.ints([1, 1, 2]), g.ints([2, 2, 1])
    ),
    "hierarchy.leaders": lambda g: hierarchy.leaders(
        _tree(g), hierarchy.fcluster(_tree(g), 3, "maxclust")
    ),
    "hierarchy.leaves_list": lambda g: hierarchy.leaves_list(_tree(g)),
    "hierarchy.maxdists": lambda g: hierarchy.maxdists(_tree(g)),
    "hierarchy.maxinconsts": lambda g: hierarchy.maxinconsts(
        _tree(g), hierarchy.inconsistent(_tree(g))
    ),
    "hierarchy.maxRstat": lambda g: hierarchy.maxRstat(
        _tree(g), hierarchy.inconsistent(_tree(g)), 0
    ),
    "hierarchy.num_obs_linkage": lambda g: hierarchy.num_obs_linkage(_tree(g)),
    "hierarchy.optimal_leaf_ordering": lambda g: hierarchy.optimal_leaf_ordering(
        _tree(g), g.points
    ),
    "hierarchy.to_mlab_linkage": lambda g: hierarchy.to_mlab_linkage(_tree(g)),
    "hierarchy.from_mlab_linkage": lambda g: hierarchy.from_mlab_linkage(
        hierarchy.to_mlab_linkage(_tree(g))
    ),
    "hierarchy.to_tree": lambda g: hierarchy.to_tree(_tree(g)).pre_order(),
}
NDIMAGE: dict[str, Call] = {
    **{
        f"ndimage.{name}": lambda g, name=name: getattr(ndimage, name)(g.image)
        for name in names(
            "laplace prewitt sobel spline_filter center_of_mass extrema label maximum mean "
            "median minimum standard_deviation sum variance maximum_position"
        )
    },
    **{
        f"ndimage.{name}": lambda g, name=name: getattr(ndimage, name)(g.image, 3)
        for name in names(
            "black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter "
            "median_filter minimum_filter morphological_gradient uniform_filter white_tophat "
            "gaussian_filter gaussian_gradient_magnitude gaussian_laplace maximum_filter1d shift "
            "zoom rotate gaussian_filter1d uniform_filter1d"
        )
    },
    **{
        f"ndimage.{name}": lambda g, name=name: getattr(ndimage, name)(g.image > 0.3)
        for name in names(
            "binary_closing binary_dilation binary_erosion binary_fill_holes binary_opening "
            "distance_transform_edt distance_transform_cdt distance_transform_bf label"
        )
    },
    "ndimage.convolve": lambda g: ndimage.convolve(g.image, g.square),
    "ndimage.correlate1d": lambda g: ndimage.correlate1d(g.image, g.array([1.0, 2.0, -1.0])),
    "ndimage.affine_transform": lambda g: ndimage.affine_transform(
        g.image, g.array([[0.9, 0.1], [0.0, 1.1]])
    ),
    "ndimage.map_coordinates": lambda g: ndimage.map_coordinates(
        g.image, g.array([[1.5, 2.5], [3.5, 4.0]])
    ),
    "ndimage.percentile_filter": lambda g: ndimage.percentile_filter(g.image, 30, 3),
}
MORE: dict[str, Call] = {
    "integrate.trapezoid": lambda g: integrate.trapezoid(g.x, dx=0.5),
    "integrate.cumulative_trapezoid": lambda g: integrate.cumulative_trapezoid(g.x, g.x),
    "integrate.cumulative_simpson": lambda g: integrate.cumulative_simpson(g.v, dx=0.1),
    "integrate.romb": lambda g: integrate.romb(g.v[:33]),
    "integrate.cubature": lambda g: (
        integrate.cubature(lambda at: g.xp.exp(at[:, 0]), g.array([0.0]), g.array([1.0])).estimate
    ),
    "optimize.rosen": lambda g: optimize.rosen(g.v),
    "optimize.rosen_der": lambda g: optimize.rosen_der(g.v),
    "optimize.rosen_hess": lambda g: optimize.rosen_hess(g.v),
    "optimize.rosen_hess_prod": lambda g: optimize.rosen_hess_prod(g.v, g.sample),
    "optimize.elementwise.find_root": lambda g: (
        elementwise.find_root(lambda at: at * at - 2, (g.array([0.0]), g.array([2.0]))).x
    ),
    "differentiate.derivative": lambda g: differentiate.derivative(g.xp.exp, g.x).df,
    "differentiate.jacobian": lambda g: (
        differentiate.jacobian(
            lambda at: g.xp.stack([at[0] * at[1], at[0] ** 2]), g.array([1.0, 2.0])
        ).df
    ),
    "differentiate.hessian": lambda g: (
        differentiate.hessian(optimize.rosen, g.array([1.0, 2.0])).ddf
    ),
    "interpolate.Akima1DInterpolator": lambda g: interpolate.Akima1DInterpolator(
        g.array(range(8)), g.sample[:8]
    )(g.p),
    "interpolate.BSpline": lambda g: interpolate.BSpline(
        g.array(range(8)), g.array([1.0, 2.0, -1.0, 3.0]), 3
    )(g.array([3.5, 3.7])),
    "interpolate.CubicSpline": lambda g: interpolate.CubicSpline(g.array(range(8)), g.sample[:8])(
        g.p
    ),
    "interpolate.CubicHermiteSpline": lambda g: interpolate.CubicHermiteSpline(
        g.array(range(8)), g.sample[:8], g.other[:8]
    )(g.p),
    "interpolate.PchipInterpolator": lambda g: interpolate.PchipInterpolator(
        g.array(range(8)), g.sample[:8]
    )(g.p),
    "interpolate.PPoly": lambda g: interpolate.PPoly(g.square, g.array(range(5)))(g.p),
    "interpolate.RegularGridInterpolator": lambda g: interpolate.RegularGridInterpolator(
        (g.array(range(4)), g.array(range(6))), g.x
    )(g.array([[0.5, 1.5], [2.5, 3.0]])),
    "interpolate.make_interp_spline": lambda g: interpolate.make_interp_spline(
        g.array(range(8)), g.sample[:8]
    )(g.p),
    "interpolate.make_smoothing_spline": lambda g: interpolate.make_smoothing_spline(
        g.array(range(8)), g.sample[:8]
    )(g.p),
    "constants.convert_temperature": lambda g: constants.convert_temperature(g.x, "C", "K"),
    "constants.lambda2nu": lambda g: constants.lambda2nu(g.x),
    "integrate.tanhsinh": lambda g: (
        integrate.tanhsinh(g.xp.exp, g.array([0.0]), g.array([1.0])).integral
    ),
    "integrate.nsum": lambda g: (
        integrate.nsum(lambda k: 1 / k**2, g.array([1.0]), g.array([100.0])).sum
    ),
}
BY_VIEWS = {
    "integrate.tanhsinh to infinity": lambda g: (
        integrate.tanhsinh(
            lambda x: g.xp.exp(-x * x), g.array([0.0]), g.array([g.xp.inf])
        ).integral
    ),
    "integrate.nsum to infinity": lambda g: (
        integrate.nsum(lambda k: 1 / k**2, g.array([1.0]), g.array([g.xp.inf])).sum
    ),
}
TABLES = {**SPECIAL, **FFT, **LINALG, **CLUSTER, **NDIMAGE, **MORE}
LOOSE = {"integrate.cumulative_simpson", "interpolate.Akima1DInterpolator", "polygamma"}
REFUSED = {
    "linalg.bandwidth": (lambda g: linalg.bandwidth(g.square), AttributeError, "flags"),
    "linalg.issymmetric": (lambda g: linalg.issymmetric(g.square), AttributeError, "flags"),
    "interpolate.RBFInterpolator": (
        lambda g: interpolate.RBFInterpolator(g.points, g.points[:, 0]),
        AttributeError,
        "view",
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TABLES)
def test_as_with_arrays(name, dtype):
    compare(TABLES[name], dtype, loose=name in LOOSE)


@pytest.mark.parametrize("name", ONTO_HOST)
def test_functions_that_scipy_runs_on_the_host(name):
    compare(ONTO_HOST[name], "float64", onto_host=True)


@pytest.mark.parametrize("call", BY_VIEWS.values(), ids=BY_VIEWS)
@pytest.mark.filterwarnings("ignore")
def test_functions_that_write_through_views(call):
    by_views(call)


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_functions_that_cannot_work(call, error, message):
    refused(call, error, message)
