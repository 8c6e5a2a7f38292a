package extproc

import (
	"context"
	"errors"
	"io"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// resetTime is the maximum time between the half-close and the reset of a stream. Envoy sends both at once.
const resetTime = 50 * time.Millisecond

// endTime is the maximum time that a stream stays open after its last message. Envoy normally ends the stream immediately. Other clients
// may wait until the gateway ends the stream.
const endTime = 5 * time.Second

// delivery waits until Envoy ends a stream, and reports whether Envoy processed the last message. If Envoy has given up on the request, it
// half-closes and then resets the stream; otherwise it does only one of the two. The function next returns the next message of the stream.
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

// errSlowBody is returned if the body of a request does not arrive in time.
var errSlowBody = errors.New("the request body did not arrive in time")

// receiveNext starts to receive the next message and returns a function that waits for the message. It starts early, because only a
// receiver that already waits is certain to see the half-close of a stream before its reset. If no message arrives within limit, the
// function returns errSlowBody. A limit of 0 means no limit.
func receiveNext(stream extprocv3.ExternalProcessor_ProcessServer, limit time.Duration) func() (*extprocv3.ProcessingRequest, error) {
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
		var late <-chan time.Time
		if limit > 0 {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case m := <-arrived:
			return m.req, m.err
		case <-late:
			return nil, errSlowBody
		}
	}
}
