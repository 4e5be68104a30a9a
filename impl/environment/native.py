"""The decorator of native code that makes no array, and therefore counts no references to any.

numba counts them at every call that is given an array, which costs more than most of what is called here. Who makes an
array takes `numba.njit`, and may call what is here; not the other way round, as the compiler says.
"""

from __future__ import annotations

from functools import partial

import numba

njit = partial(numba.njit, _nrt=False)
