package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// recoveryWait is the longest wait of a recovery of intents for gateways.
	recoveryWait = 5 * time.Second
	// recoveryPoll is the interval between two checks of a recovery.
	recoveryPoll = 50 * time.Millisecond
	// recoveryKept is the retention time of the announcement of a recovery.
	recoveryKept = time.Hour
	// announceSlack limits how much older the epoch of a later announcement can be than the epoch of an earlier announcement.
	announceSlack = time.Minute
	// rememberBatch is the largest number of intents that one script restores.
	rememberBatch = 64
)

// Recover restores the intents of this gateway after a loss, and waits at most recoveryWait until all gateways have restored their intents.
// If nothing was lost, Recover only reads the current epoch.
func (s *Intents) Recover(ctx context.Context, org string) error {
	s.mu.Lock()
	o := s.of(org)
	s.mu.Unlock()
	o.recovering.Lock()
	defer o.recovering.Unlock()
	for {
		complete, err := s.step(ctx, org, o)
		if err != nil || complete {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ledger.ErrUnavailable, ctx.Err())
		case <-time.After(recoveryPoll):
		}
	}
}

// step restores the intents of this gateway unless it has done so before, and reports whether the intents are complete.
func (s *Intents) step(ctx context.Context, org string, o *intents) (complete bool, err error) {
	keys, first := s.opening(org)
	args := append(first, recoveryWait.Milliseconds())
	if s.peers != nil {
		for _, name := range s.peers() {
			args = append(args, name)
		}
	}
	list, err := s.recovery.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return false, fmt.Errorf("recover intents: %w: %w", ledger.ErrUnavailable, err)
	}
	complete, head, err := s.head(org, list)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	restored := o.epoch == head[0]
	s.mu.Unlock()
	switch {
	case !restored:
		if err := s.restore(ctx, org, o, head[0], complete); err != nil || complete {
			return complete, err
		}
		return s.step(ctx, org, o)
	case !complete:
		return false, s.announce(ctx, org, head[0])
	}
	return true, nil
}

// lost returns the key of the announced recoveries: organisations by epoch.
func (s *Intents) lost() string { return s.prefix + "lost" }

// announce informs the other gateways that the intents of an organisation are incomplete.
func (s *Intents) announce(ctx context.Context, org string, epoch int64) error {
	old := strconv.FormatInt(epoch-recoveryKept.Milliseconds(), 10)
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAddGT(ctx, s.lost(), redis.Z{Score: float64(epoch), Member: org})
		p.ZRemRangeByScore(ctx, s.lost(), "-inf", old)
		return nil
	})
	if err != nil {
		return fmt.Errorf("announce recovery: %w: %w", ledger.ErrUnavailable, err)
	}
	return nil
}

// RestoreAnnounced restores the intents of this gateway for the recoveries announced by other gateways.
func (s *Intents) RestoreAnnounced(ctx context.Context) error {
	since := s.answered.Load() - announceSlack.Milliseconds()
	announced, err := s.client.ZRangeByScoreWithScores(ctx, s.lost(), &redis.ZRangeBy{Min: strconv.FormatInt(since, 10), Max: "+inf"}).Result()
	if err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	for _, a := range announced {
		org, epoch := a.Member.(string), int64(a.Score) //nolint:forcetypeassert // members are strings
		s.mu.Lock()
		o := s.of(org)
		answered := o.epoch >= epoch
		s.mu.Unlock()
		if answered || !o.recovering.TryLock() {
			continue
		}
		_, err := s.step(ctx, org, o)
		o.recovering.Unlock()
		if err != nil {
			return err
		}
		s.answered.Store(max(s.answered.Load(), epoch))
	}
	return nil
}

// restore restores the intents that this gateway remembers for an epoch, and marks them as restored. It does not mark complete intents
// if the gateway remembers nothing.
func (s *Intents) restore(ctx context.Context, org string, o *intents, epoch int64, complete bool) error {
	var all []ledger.RestoredIntent
	if s.remembered != nil {
		all = s.remembered(org)
	}
	if complete && len(all) == 0 {
		s.adopt(o, epoch, 0)
		return nil
	}
	keys, first := s.opening(org)
	for {
		batch := all[:min(rememberBatch, len(all))]
		all = all[len(batch):]
		name := ""
		if len(all) == 0 {
			name = s.name
		}
		args := append(slices.Clip(first), strconv.FormatInt(epoch, 10), name)
		for i := range batch {
			r := &batch[i]
			args = append(args, r.Created, r.Fingerprint, r.Lookalike, r.Response, r.Intent, r.Row, r.Adoptions, r.Owner, r.Text)
		}
		list, err := s.restoring.Run(ctx, s.client, keys, args...).Slice()
		if err != nil {
			return fmt.Errorf("restore reservations: %w: %w", ledger.ErrUnavailable, err)
		}
		known, head, err := s.head(org, list)
		if err != nil || !known {
			return err // another epoch has begun: the next step restores for it
		}
		if len(all) == 0 {
			s.adopt(o, epoch, head[1])
			return nil
		}
	}
}

// adopt sets the known epoch.
func (s *Intents) adopt(o *intents, epoch, writes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.epoch, o.writes, o.wrote = epoch, writes, time.Now()
}
