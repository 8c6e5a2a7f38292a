package extproc

import (
	"context"
	"errors"
	"io"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// resetTime is the longest time between the half-close of a stream and its reset. Envoy sends both together.
const resetTime = 50 * time.Millisecond

// endTime limits how long a stream stays open after its last message. Envoy ends the stream immediately unless its host is gone; other
// clients may wait for the gateway to end it.
const endTime = 5 * time.Second

// delivery waits until Envoy ends a stream after the last message, and reports whether Envoy processed that message. If Envoy has given up
// on the request, it half-closes the stream and then resets it; otherwise it does only one of the two. next returns the next message of the
// stream.
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

// receiveNext starts to receive the next message and returns a function that waits for it. A receiver that already waits gets the
// half-close of a stream before its reset; a receiver that starts after both may get either.
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
