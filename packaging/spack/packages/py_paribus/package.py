"""For Spack; until a release has an archive, of a checkout: `spack dev-build py-paribus@0.2.0`."""

from spack.package import depends_on, license, variant, version  # noqa: A004
from spack_repo.builtin.build_systems.python import PythonPackage


class PyParibus(PythonPackage):
    """Controlled comparisons of HPC and AI cluster platforms: one factor, interleaved launches, an
    interval and a verdict."""

    license("Apache-2.0")

    version("0.2.0")  # url and sha256 come with the release

    variant("serve", default=False, description="The workbench in a browser")
    variant("gpu", default=False, description="Counters of NVIDIA GPUs")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.24:", type="build")
    depends_on("py-clustershell@1.9:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pyarrow@15:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-nvidia-ml-py@12.535:", type=("build", "run"), when="+gpu")
    depends_on("py-starlette@0.40:", type=("build", "run"), when="+serve")
    depends_on("py-uvicorn@0.30:", type=("build", "run"), when="+serve")
    # vl-convert-python, which draws figures, has no recipe there: without it reports have none.
