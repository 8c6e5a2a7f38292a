package limits

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/world"
)

// binary is the built tollgate.
var binary string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tollgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "tollgate")
	if err := built.Tollgate(context.Background(), binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	world.Overlap("4")
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
