package built

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Shared is tollgate for all tests of a package, built when the first of them asks. Its zero
// value is ready; TestMain calls [Shared.Remove] at the end.
type Shared struct {
	once sync.Once
	dir  string
	err  error
}

// Path returns where tollgate is.
func (s *Shared) Path(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		//nolint:usetesting // it outlives the test that asks first
		if s.dir, s.err = os.MkdirTemp("", "tollgate"); s.err == nil {
			s.err = Tollgate(context.WithoutCancel(t.Context()), filepath.Join(s.dir, "tollgate"))
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return filepath.Join(s.dir, "tollgate")
}

// Remove removes it, if it was built.
func (s *Shared) Remove() {
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
