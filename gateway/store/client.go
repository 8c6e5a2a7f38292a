package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Bounds of the calls under way at once. Redis runs one script at a time: a second
// pipeline is written while the replies of the first are read.
const (
	maxInFlight = 2
	maxBatch    = 128
)

// BatchClient is a client whose scripts, reads of keys and pipelines travel together; other
// commands do not. None is taken back when its caller has left, and may be waited for a little
// longer than its context says: as long as the client's timeouts allow for the pipeline
// ahead of it.
type BatchClient struct {
	redis.Cmdable

	single  Redis // for a command that travels alone
	group   *ratelimit.Group[call]
	cluster bool
}

// Redis is the client that a Client sends by, a redistest.Conn or a *redis.ClusterClient.
type Redis interface {
	redis.Cmdable
	Process(ctx context.Context, cmd redis.Cmder) error
}

// call is the request of one caller.
type call struct {
	cmds []redis.Cmder
	// until is the deadline of the caller, zero for none.
	until time.Time
}

// NewBatchClient returns a Client on another one, which it does not own.
func NewBatchClient(client Redis) *BatchClient {
	c := &BatchClient{Cmdable: client, single: client}
	_, c.cluster = client.(*redis.ClusterClient)
	c.group = ratelimit.NewGroup(maxInFlight, maxBatch, c.exchange)
	return c
}

// EvalSha implements redis.Scripter.
func (c *BatchClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "evalsha", sha, keys, args)
}

// Eval implements redis.Scripter.
func (c *BatchClient) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "eval", source, keys, args)
}

// MGet implements redis.StringCmdable.
func (c *BatchClient) MGet(ctx context.Context, keys ...string) *redis.SliceCmd {
	const name = "mget"
	all := append(make([]any, 0, 1+len(keys)), name)
	for i := range keys {
		all = append(all, &keys[i]) // no allocation, as a string would be: lists ask for thousands
	}
	cmd := redis.NewSliceCmd(ctx, all...)
	c.do(ctx, name, keys, cmd)
	return cmd
}

// Pipelined implements redis.Cmdable. In a cluster, where its keys may have many slots, it
// travels alone.
func (c *BatchClient) Pipelined(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
	if c.cluster {
		return c.Cmdable.Pipelined(ctx, fill)
	}
	p := c.Pipeline()
	if err := fill(p); err != nil {
		return nil, err
	}
	cmds := p.Cmds()
	if len(cmds) == 0 {
		return nil, nil
	}
	c.do(ctx, "pipeline", nil, cmds...)
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return cmds, err
		}
	}
	return cmds, nil
}

func (c *BatchClient) run(ctx context.Context, name, source string, keys []string, args []any) *redis.Cmd {
	all := append(make([]any, 0, 3+len(keys)+len(args)), name, source, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	c.do(ctx, name, keys, cmd)
	return cmd
}

// do sends commands with those of the same instant.
func (c *BatchClient) do(ctx context.Context, name string, keys []string, cmds ...redis.Cmder) {
	if err := ctx.Err(); err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return
	}
	defer c.Span(ctx, name)()
	s := call{cmds: cmds}
	s.until, _ = ctx.Deadline()
	c.group.Do(ctx, c.slot(keys), &s)
}

// Span begins the span of a command, if the trace of ctx is sampled.
func (*BatchClient) Span(ctx context.Context, name string) (end func()) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return func() {}
	}
	_, span := parent.TracerProvider().Tracer("github.com/tollgate-dev/tollgate/gateway/store").Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(semconv.DBSystemNameRedis, semconv.DBOperationName(name)))
	return func() { span.End() }
}

// slot names the calls that travel together: in a cluster, the scripts of one slot, so that a
// node that is away holds up no other.
func (c *BatchClient) slot(keys []string) string {
	if !c.cluster || len(keys) == 0 {
		return ""
	}
	_, tag, _ := strings.Cut(keys[0], "{")
	tag, _, _ = strings.Cut(tag, "}")
	return tag
}

// exchange sends calls and leaves the error of each command in the command.
//
// go-redis sets no error on the commands of a pipeline if the server refused the handshake of
// the connection (a wrong password, a database out of range): only Exec returns it then. Those
// commands have neither an error nor a value, so all of them get the error of Exec.
func (c *BatchClient) exchange(ctx context.Context, calls []*call) {
	ctx, cancel := ratelimit.GroupContext(ctx, calls, func(c *call) time.Time { return c.until })
	defer cancel()
	if first := calls[0].cmds; len(calls) == 1 && len(first) == 1 {
		_ = c.single.Process(ctx, first[0])
		return
	}
	p := c.Pipeline()
	for _, s := range calls {
		_ = p.BatchProcess(ctx, s.cmds...)
	}
	cmds, err := p.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Queued returns the number of calls that wait for a write.
func (c *BatchClient) Queued() int { return c.group.Queued() }
