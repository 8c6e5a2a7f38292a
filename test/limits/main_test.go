package limits

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/world"
)

// binary is tollgate.
var binary built.Shared //nolint:gochecknoglobals // built once for all tests

func TestMain(m *testing.M) {
	world.Overlap("4")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		binary.Remove()
		os.Exit(code)
	}))
}
