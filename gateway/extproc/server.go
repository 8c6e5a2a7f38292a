package extproc

import (
	"errors"
	"io"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Server implements the ext_proc service (external processing) for Envoy.
type Server struct {
	extprocv3.UnimplementedExternalProcessorServer

	// Pipeline returns the pipeline of the configuration in force. It is called once per request, and must not return nil.
	Pipeline func() *filter.Pipeline
	Recorder *telemetry.Recorder
	// BodyTimeout is the time limit for receiving a request body. 0 means no limit. Envoy may wait longer, because its request_timeout also
	// applies to the larger bodies of the run interface.
	BodyTimeout time.Duration
}

// maxMessage is the maximum size of a message in bytes. A larger message ends the stream. Therefore maxMessage exceeds Envoy's buffers (the
// listener's buffer for requests, and the cluster's buffer, 1 MiB by default, for responses), so that the chain can refuse large bodies.
const maxMessage = 4 << 20

// minPing is the minimum interval of keepalive pings from Envoy (connection_keepalive of the cluster). The default of gRPC, five minutes,
// is too long for detecting an unreachable gateway.
const minPing = 5 * time.Second

// The server sends a keepalive ping on a connection that was idle for pingAfter. If no reply arrives within pingTimeout, it closes the
// connection. The defaults of gRPC are two hours and 20 seconds.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

// streamWorkers is the number of goroutines that serve one stream after another, so that their grown stacks are reused. If all of them are
// busy, a stream gets a new goroutine.
const streamWorkers = 128

// Flow control windows. The window of a stream is large enough for the largest body that Envoy sends. Without these settings, gRPC would
// send a ping for almost every message to estimate the windows.
const (
	streamWindow     = 1 << 18
	connectionWindow = 1 << 24
)

// NewGRPC returns a gRPC server on which s is registered. The caller may register further services.
func (s *Server) NewGRPC(opts ...grpc.ServerOption) *grpc.Server {
	g := grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
	)...)
	extprocv3.RegisterExternalProcessorServer(g, s)
	return g
}

// Process implements the ext_proc service. It serves one HTTP request. It returns nil only after it has sent the last reply, because Envoy
// treats a clean end of the stream as approval. If the delivery of the last reply must be confirmed, Process waits until Envoy ends the
// stream, for at most endTime.
func (s *Server) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	se := &session{server: s, pipeline: s.Pipeline()}
	defer se.finish()
	next := stream.Recv
	for se.phase != finished {
		req, err := next()
		var res *extprocv3.ProcessingResponse
		switch {
		case errors.Is(err, errSlowBody):
			res = se.slowBody()
		case errors.Is(err, io.EOF):
			return status.Error(codes.Unavailable, "the stream ended before the gateway made a decision")
		case err != nil:
			return err
		default:
			if next = stream.Recv; req.GetRequestBody() != nil { // requests without a body create nothing
				next = receiveNext(stream, 0)
			}
			if res, err = se.handle(stream.Context(), req); err != nil {
				return se.fault(err)
			}
			if se.phase == awaitBody {
				next = receiveNext(stream, s.BodyTimeout)
			}
		}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
	se.record()
	if se.mustDeliver() {
		se.delivery = delivery(stream.Context(), next)
	}
	return nil
}
