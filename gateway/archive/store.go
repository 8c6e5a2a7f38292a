package archive

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed keep.lua
var keepSource string

// ErrUnavailable means that the store cannot be asked.
var ErrUnavailable = errors.New("archive: the store cannot be asked")

// Entry is one explanation.
type Entry struct {
	// ID is the decision's. It has no space.
	ID string
	// Time is when the exchange began; to the store's clock, what is later is now.
	Time time.Time
	// Summary and Report are JSON.
	Summary, Report json.RawMessage
}

// Store keeps explanations in Redis. It is safe for concurrent use. It does not own
// its client.
type Store struct {
	client redis.UniversalClient
	prefix string
	config Config
	keep   *redis.Script
}

// New returns a store whose keys begin with prefix. It does not dial.
func New(client redis.UniversalClient, prefix string, cfg Config) *Store {
	return &Store{client: client, prefix: prefix, config: cfg, keep: redis.NewScript(keepSource)}
}

func (s *Store) index(org string) string   { return s.prefix + "{" + org + "}:index" }
func (s *Store) reports(org string) string { return s.prefix + "{" + org + "}:reports" }

// Keep adds explanations of an organisation and drops what is too old or too many.
func (s *Store) Keep(ctx context.Context, org string, entries []Entry) error {
	args := make([]any, 0, 2+4*len(entries))
	args = append(args, s.config.For.Milliseconds(), s.config.Max)
	for _, e := range entries {
		args = append(args, e.ID, e.Time.UnixMilli(), []byte(e.Summary), []byte(e.Report))
	}
	if err := s.keep.Run(ctx, s.client, []string{s.index(org), s.reports(org)}, args...).Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Find returns the report of a decision of any of some organisations, nil if none has
// it.
func (s *Store) Find(ctx context.Context, orgs []string, id string) (json.RawMessage, error) {
	found, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, org := range orgs {
			p.HGet(ctx, s.reports(org), id)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, cmd := range found {
		report, err := cmd.(*redis.StringCmd).Bytes() //nolint:forcetypeassert // what HGet appends
		if err == nil {
			return report, nil
		}
		if !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil, nil
}

// page is how many summaries are read at once.
const page = 500

// List calls visit with the summaries of an organisation that are not older than
// since, newest first, until it returns false. One that is added meanwhile may be
// missed or seen twice.
func (s *Store) List(ctx context.Context, org string, since time.Time, visit func(summary json.RawMessage) bool) error {
	oldest := strconv.FormatInt(max(0, since.UnixMilli()), 10)
	for offset := int64(0); ; offset += page {
		members, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: s.index(org), Start: "+inf", Stop: oldest, ByScore: true, Rev: true, Offset: offset, Count: page,
		}).Result()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		for _, m := range members {
			if _, summary, _ := strings.Cut(m, " "); !visit(json.RawMessage(summary)) {
				return nil
			}
		}
		if len(members) < page {
			return nil
		}
	}
}
