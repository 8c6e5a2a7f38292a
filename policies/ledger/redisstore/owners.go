package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Owners implements ledger.Store.
func (s *Store) Owners(ctx context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, bool, error) {
	keys, seen := s.keys(org), s.seen(org)
	var head *head
	records, notes := new(redis.SliceCmd), new(redis.SliceCmd)
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		head = s.readHead(ctx, p, keys)
		if len(resources) > 0 {
			records = p.HMGet(ctx, keys[1], resources...)
		}
		if len(jobs) > 0 {
			notes = p.MGet(ctx, s.jobs(org, jobs)...)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read owners: %w: %w", ledger.ErrUnavailable, err)
	}
	owners, err := ownersIn(resources, records.Val(), notes.Val())
	if err != nil {
		return nil, false, err
	}
	st, err := head.state(seen)
	return owners, st.complete, err
}

func ownersIn(resources []string, records, notes []any) ([]ledger.Owner, error) {
	owners := make([]ledger.Owner, len(records), len(records)+len(notes))
	for i, v := range records {
		text, known := v.(string)
		if !known {
			continue
		}
		r, err := decodeResource(resources[i], text)
		if err != nil {
			return nil, err
		}
		owners[i] = r.Owner
	}
	for _, v := range notes {
		text, _ := v.(string)
		team, key, _ := strings.Cut(text, "\n")
		owners = append(owners, ledger.Owner{Team: team, Key: key})
	}
	return owners, nil
}

// SetJobOwner implements ledger.Store.
func (s *Store) SetJobOwner(ctx context.Context, org string, j ledger.Job, o ledger.Owner, keep time.Duration) error {
	key := s.jobs(org, []ledger.Job{j})[0]
	if err := s.client.SetArgs(ctx, key, o.Team+"\n"+o.Key, redis.SetArgs{Mode: "NX", TTL: keep}).Err(); err != nil &&
		!errors.Is(err, redis.Nil) {
		return fmt.Errorf("store the owner of a job: %w: %w", ledger.ErrUnavailable, err)
	}
	return nil
}

// jobs returns the keys of the owners of jobs.
func (s *Store) jobs(org string, jobs []ledger.Job) []string {
	keys := make([]string, len(jobs))
	for i, j := range jobs {
		keys[i] = s.prefix + "{" + org + "}:job:" + j.Endpoint + "/" + j.ID
	}
	return keys
}
