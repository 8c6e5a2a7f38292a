package decisions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

// retention is how long Redis stores the counts.
const retention = 30 * 24 * time.Hour

// CountKey identifies a count: a policy's verdict on calls by a team in one hour.
type CountKey struct {
	Hour                  time.Time
	Policy, Verdict, Team string
}

// CountStore stores counts of policy verdicts. It is safe for concurrent use and does not close its client.
type CountStore struct{ hours, days store.Hashes }

// NewCountStore returns a CountStore whose keys start with prefix. It does not dial.
func NewCountStore(client store.Client, prefix string) *CountStore {
	return &CountStore{
		store.Hashes{Client: client, Prefix: prefix, TTL: retention + time.Hour},
		store.Hashes{Client: client, Prefix: prefix, TTL: dayRetention},
	}
}

// hourOf returns the key for an hour of an organisation.
func hourOf(org string, hour time.Time) string {
	return "{" + org + "}:" + strconv.FormatInt(hour.Unix()/3600, 10)
}

// apart separates the parts of a field. IDs never contain it.
const apart = "\x00"

// Add adds counts of an organisation.
func (s *CountStore) Add(ctx context.Context, org string, counts map[CountKey]int64) error {
	fields := make(map[store.Field]int64, len(counts))
	for key, n := range counts {
		fields[store.Field{Hash: hourOf(org, key.Hour), Name: strings.Join([]string{key.Policy, key.Verdict, key.Team}, apart)}] = n
	}
	return s.hours.Add(ctx, fields)
}

// read calls visit for each count in the hashes of the hours from first (inclusive) to last (exclusive). The names of the hashes end with
// suffix.
func (s *CountStore) read(
	ctx context.Context, org string, first, last time.Time, suffix string, visit func(hour time.Time, field string, n int64),
) error {
	var hours []time.Time
	var names []string
	for h := first.UTC().Truncate(time.Hour); h.Before(last); h = h.Add(time.Hour) {
		hours, names = append(hours, h), append(names, hourOf(org, h)+suffix)
	}
	found, err := s.hours.Get(ctx, names...)
	for i, fields := range found {
		for field, text := range fields {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				visit(hours[i], field, n)
			}
		}
	}
	return err
}

// List returns the counts of an organisation, sorted by hour, policy, verdict and team. The hours that contain the times first and last are
// included.
func (s *CountStore) List(ctx context.Context, org string, first, last time.Time) ([]PolicyCount, error) {
	var out []PolicyCount
	err := s.read(ctx, org, first, last.Add(1), "", func(hour time.Time, field string, n int64) {
		if parts := strings.Split(field, apart); len(parts) == 3 { // other fields were written by another version
			out = append(out, PolicyCount{hour, parts[0], parts[1], parts[2], n})
		}
	})
	slices.SortFunc(out, func(a, b PolicyCount) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Team, b.Team))
	})
	return out, err
}

// sinceStored returns the later of a time and the time before which counts are no longer stored.
func sinceStored(since adminapi.Since, now time.Time) time.Time {
	if oldest := now.Add(-retention); time.Time(since).Before(oldest) {
		return oldest
	}
	return time.Time(since)
}

// unwritten accumulates counts of organisations until write stores them. It is safe for concurrent use.
type unwritten[K comparable] struct {
	mu     sync.Mutex // guards counts
	counts map[string]map[K]int64
}

// add adds n to a count of an organisation.
func (u *unwritten[K]) add(org string, key K, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.counts == nil {
		u.counts = make(map[string]map[K]int64)
	}
	if u.counts[org] == nil {
		u.counts[org] = make(map[K]int64)
	}
	u.counts[org][key] += n
}

// write moves the counts to the store. Counts that could not be stored are retained for the next call.
func (u *unwritten[K]) write(ctx context.Context, store func(ctx context.Context, org string, counts map[K]int64) error) error {
	u.mu.Lock()
	all := u.counts
	u.counts = nil
	u.mu.Unlock()
	var errs []error
	for org, counts := range all {
		if err := store(ctx, org, counts); err != nil {
			errs = append(errs, err)
			for key, n := range counts {
				u.add(org, key, n)
			}
		}
	}
	return errors.Join(errs...)
}
