package translate

import "errors"

// ErrAmbiguous is wrapped by errors of Caller.Call when the platform may have
// carried out the call although its answer was lost.
var ErrAmbiguous = errors.New("the platform's answer was lost")
