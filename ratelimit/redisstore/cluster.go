package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reloadInterval is how old a cluster client's view of the cluster may be. The view is also loaded
	// when an exchange fails, but a failure may come before the replica is promoted.
	reloadInterval = time.Second
	// firstWait and longestWait are the pauses between attempts while a slot moves.
	firstWait, longestWait = 5 * time.Millisecond, 50 * time.Millisecond
)

// newCluster returns a client of a cluster. It follows the cluster when slots move and replicas are
// promoted, and repeats a command only if the node has said that it did not execute the command.
func newCluster(o *redis.UniversalOptions) *redis.ClusterClient {
	options := o.Cluster()
	options.ClusterStateReloadInterval = reloadInterval
	client := redis.NewClusterClient(options)
	client.AddHook(&follower{reload: client.ReloadState, patience: o.ReadTimeout})
	return client
}

// follower is the hook of a cluster client that loads the slots anew when a node does not answer,
// and repeats commands that a node refused with TRYAGAIN, because it has a part of their keys while
// their slot moves. go-redis follows MOVED and ASK by itself.
//
// Scripts and pipelines are marked as not to be retried. Otherwise a cluster client, unlike the client
// of one node, would send them again after a lost connection, and the whole pipeline if only its
// first command was refused.
type follower struct {
	reload func(context.Context)
	// patience is how long a command is repeated.
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
			return next(ctx, cmds) // all of them or none, which go-redis sees to
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

// failed loads the slots anew after an error that is no node's answer, or says that no node
// serves the slot.
func (f *follower) failed(ctx context.Context, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if _, answered := errors.AsType[redis.Error](err); !answered || redis.IsClusterDownError(err) {
		f.reload(ctx)
	}
}

// waits are the pauses between the attempts of a command.
type waits struct {
	pause time.Duration
	until time.Time
}

func (f *follower) waits() waits { return waits{firstWait, time.Now().Add(f.patience)} }

// next pauses, and reports whether there is to be another attempt.
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
