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

// Limits of concurrent pipelines. Redis executes one script at a time, so a second pipeline is written while the replies to the first are
// read.
const (
	maxInFlight = 2
	maxBatch    = 128
)

// BatchClient is a client that sends concurrent scripts, MGET commands and pipelines of different callers in one write. Other commands are
// sent separately. A command that has been sent is not canceled with its context. It may exceed the deadline of its context by the duration
// of the previous pipeline.
type BatchClient struct {
	redis.Cmdable

	single  Redis // sends a command that is alone in its batch
	group   *ratelimit.Group[call]
	cluster bool
}

// Redis is the client used by a BatchClient, such as a *redis.Client or a *redis.ClusterClient.
type Redis interface {
	redis.Cmdable
	Process(ctx context.Context, cmd redis.Cmder) error
}

// call contains the commands of one caller.
type call struct {
	cmds []redis.Cmder
	// until is the caller's deadline, or zero.
	until time.Time
}

// NewBatchClient returns a BatchClient that uses client, which it does not own.
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
		all = append(all, &keys[i]) // a pointer avoids an allocation per key; lists request thousands
	}
	cmd := redis.NewSliceCmd(ctx, all...)
	c.do(ctx, name, keys, cmd)
	return cmd
}

// Pipelined implements redis.Cmdable. In a cluster, the pipeline is sent separately rather than batched, because its keys may be in many
// slots.
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

// do sends commands in the current batch.
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

// Span starts a span for a command if the trace of ctx is sampled. end ends the span.
func (*BatchClient) Span(ctx context.Context, name string) (end func()) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return func() {}
	}
	_, span := parent.TracerProvider().Tracer("github.com/tollgate-dev/tollgate/gateway/store").Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(semconv.DBSystemNameRedis, semconv.DBOperationName(name)))
	return func() { span.End() }
}

// slot returns the name of the batch for the given keys. In a cluster, each slot has its own batch, so that a node that is down delays only
// its own commands.
func (c *BatchClient) slot(keys []string) string {
	if !c.cluster || len(keys) == 0 {
		return ""
	}
	_, tag, _ := strings.Cut(keys[0], "{")
	tag, _, _ = strings.Cut(tag, "}")
	return tag
}

// exchange sends the commands of calls, and stores errors in the commands.
//
// If the server refuses the handshake of a connection (wrong password, database out of range), go-redis does not set an error on the
// commands of a pipeline; only Exec returns it. The commands then have neither an error nor a value, so all of them receive the error of
// Exec.
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

// Queued returns the number of calls waiting to be sent.
func (c *BatchClient) Queued() int { return c.group.Queued() }
