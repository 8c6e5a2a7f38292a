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

// Server is the Envoy door.
type Server struct {
	extprocv3.UnimplementedExternalProcessorServer

	// Pipeline returns the configuration in force; it is called once for each
	// request and must not return nil.
	Pipeline func() *filter.Pipeline
	Recorder *telemetry.Recorder
}

// maxMessage admits what Envoy's buffers hold: those of a listener for requests,
// those of a cluster (1 MiB unless set, and then some) for answers. Larger
// messages end the stream; bodies within it are for the chain to refuse.
const maxMessage = 4 << 20

// minPing is how often Envoy may ask whether the connection still lives
// (connection_keepalive of the cluster). The default of gRPC is five minutes,
// too long to find out that a gateway is cut off.
const minPing = 5 * time.Second

// A connection that has been silent for pingAfter is asked whether it still lives, and is closed if no answer arrives within pingTimeout.
// The defaults of gRPC are two hours and 20 seconds.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

// streamWorkers is how many goroutines serve streams, one after the other, each with
// the stack that its first one needed. Streams beyond them get goroutines of their own.
const streamWorkers = 128

// Windows of flow control. A stream's holds the largest body that Envoy sends. Left
// to itself, gRPC estimates them with a ping for almost every message.
const (
	streamWindow     = 1 << 18
	connectionWindow = 1 << 24
)

// NewGRPC returns a gRPC server with the door registered; others may register
// theirs beside it.
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

// Process serves one request of Envoy's. It ends without an error once the last answer
// was sent, which leaves together with it; before, Envoy would take that for consent. If the answer
// must be delivered, the stream stays open until Envoy ends it, at most for endTime.
func (s *Server) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	se := &session{server: s, pipeline: s.Pipeline()}
	defer se.finish()
	next := stream.Recv
	for se.phase != finished {
		req, err := next()
		if errors.Is(err, io.EOF) {
			return status.Error(codes.Unavailable, "the stream ended before the verdict")
		}
		if err != nil {
			return err
		}
		if next = stream.Recv; req.GetRequestBody() != nil { // nothing is created without one
			next = receiveNext(stream)
		}
		res, err := se.handle(stream.Context(), req)
		if err != nil {
			return se.fault(err)
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
