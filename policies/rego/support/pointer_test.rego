package tollgate.pointer_test

import data.tollgate.pointer

test_escape if pointer.escape("a/b~c") == "a~1b~0c"
