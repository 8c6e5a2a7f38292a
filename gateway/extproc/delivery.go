package extproc

import (
	"context"
	"errors"
	"io"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// resetTime is how long after the half-close of a stream its reset may arrive. Envoy sends both together.
const resetTime = 50 * time.Millisecond

// endTime is how long after its last answer a stream stays open at most. Envoy ends it at once, unless its host is gone; other clients may
// wait for the end.
const endTime = 5 * time.Second

// delivery waits until Envoy ends a stream on which the last answer was sent, and reports whether Envoy has taken that answer: if it has
// given up, it half-closes the stream and resets it; otherwise it does one of the two. next returns the next message of the stream.
func delivery(stream context.Context, next func() (*extprocv3.ProcessingRequest, error)) filter.Delivery {
	ended := make(chan error, 1)
	go func() {
		_, err := next()
		ended <- err
	}()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case err := <-ended:
		if !errors.Is(err, io.EOF) {
			return filter.Delivered
		}
	case <-timer.C:
		return filter.Delivered
	}
	timer.Reset(resetTime)
	select {
	case <-stream.Done():
	case <-timer.C:
	}
	if stream.Err() != nil {
		return filter.Undelivered
	}
	return filter.Delivered
}

// receiveNext begins to receive the next message, and returns a function that waits for it. A receiver that waits already gets the
// half-close of a stream before its reset; one that begins after both gets either.
func receiveNext(stream extprocv3.ExternalProcessor_ProcessServer) func() (*extprocv3.ProcessingRequest, error) {
	type message struct {
		req *extprocv3.ProcessingRequest
		err error
	}
	arrived := make(chan message, 1)
	go func() {
		req, err := stream.Recv()
		arrived <- message{req, err}
	}()
	return func() (*extprocv3.ProcessingRequest, error) {
		m := <-arrived
		return m.req, m.err
	}
}
