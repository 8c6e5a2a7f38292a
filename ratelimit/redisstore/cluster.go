package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reloadInterval is the maximum age of a cluster client's view of the cluster. The view is also reloaded when a request fails, but a
	// failure may precede the promotion of a replica.
	reloadInterval = time.Second
	// firstWait and longestWait limit the pauses between attempts while a slot is being moved.
	firstWait, longestWait = 5 * time.Millisecond, 50 * time.Millisecond
)

// newCluster returns a client for a cluster. It follows moved slots and promoted replicas, and repeats a command only if the node has
// reported that it did not execute the command.
func newCluster(o *redis.UniversalOptions) *redis.ClusterClient {
	options := o.Cluster()
	options.ClusterStateReloadInterval = reloadInterval
	client := redis.NewClusterClient(options)
	client.AddHook(&follower{reload: client.ReloadState, patience: o.ReadTimeout})
	return client
}

// follower is a hook of a cluster client. It reloads the slots when a node does not respond, and repeats commands that a node refused
// with TRYAGAIN because it has only a part of their keys while their slot is being moved. go-redis handles MOVED and ASK itself.
//
// The hook marks scripts and pipelines as not to be retried. Otherwise a cluster client, unlike a client for one node, would send them
// again after a lost connection, and would repeat a whole pipeline if only its first command was refused.
type follower struct {
	reload func(context.Context)
	// patience limits the time that a command is repeated.
	patience time.Duration
}

// noRetryCmder is a command that go-redis does not retry.
type noRetryCmder struct{ redis.Cmder }

// NoRetry implements redis.Cmder.
func (noRetryCmder) NoRetry() bool { return true }

// DialHook implements redis.Hook.
func (*follower) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (f *follower) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		send := cmd
		if strings.HasPrefix(cmd.Name(), "eval") {
			send = noRetryCmder{cmd}
		}
		w := f.waits()
		for {
			err := next(ctx, send)
			f.failed(ctx, err)
			if !redis.IsTryAgainError(err) || !w.next(ctx) {
				return err
			}
		}
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f *follower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || cmds[0].Name() == "multi" {
			return next(ctx, cmds) // executed as a whole or not at all, as go-redis ensures
		}
		send := make([]redis.Cmder, len(cmds))
		for i := range cmds {
			send[i] = noRetryCmder{cmds[i]}
		}
		err := next(ctx, send)
		f.failed(ctx, err)
		for w := f.waits(); ; {
			var again []redis.Cmder
			for i := range cmds {
				if redis.IsTryAgainError(cmds[i].Err()) {
					again = append(again, send[i])
				}
			}
			if len(again) == 0 || !w.next(ctx) {
				break
			}
			err = next(ctx, again)
			f.failed(ctx, err)
		}
		for i := range cmds {
			if cmds[i].Err() != nil {
				return cmds[i].Err()
			}
		}
		return err
	}
}

// failed reloads the slots after an error that is not the reply of a node, or after a reply that no node serves the slot.
func (f *follower) failed(ctx context.Context, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if _, answered := errors.AsType[redis.Error](err); !answered || redis.IsClusterDownError(err) {
		f.reload(ctx)
	}
}

// waits computes the pauses between the attempts of a command.
type waits struct {
	pause time.Duration
	until time.Time
}

func (f *follower) waits() waits { return waits{firstWait, time.Now().Add(f.patience)} }

// next pauses, and reports whether to make another attempt.
func (w *waits) next(ctx context.Context) bool {
	if time.Now().Add(w.pause).After(w.until) {
		return false
	}
	pause := time.NewTimer(w.pause)
	defer pause.Stop()
	w.pause = min(2*w.pause, longestWait)
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}
