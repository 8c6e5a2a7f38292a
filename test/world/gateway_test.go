package world_test

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/test/world"
)

// TestServeAfterStop: a test that is over, or skipped, before its server has begun to
// serve has no fault for it.
func TestServeAfterStop(t *testing.T) {
	l := world.Listen(t)
	t.Run("over", func(t *testing.T) {
		s := grpc.NewServer()
		s.Stop()
		world.Serve(t, s, l)
	})
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}
