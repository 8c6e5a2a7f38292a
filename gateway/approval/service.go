package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Limits of an answer.
const (
	grantTime   = time.Hour
	maxGrant    = 7 * 24 * time.Hour
	maxAnswerer = 100
	maxReason   = 500
)

// Service implements the endpoints with which operators list and answer approval requests.
type Service struct {
	Store *Store
	*view.Current
}

// NewService returns a Service for the requests stored in Redis.
func NewService(client redis.Cmdable, prefix settings.Prefix, now *view.Current) Service {
	return Service{Store: New(client, prefix.Approvals()), Current: now}
}

func (a Service) list(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (List, error) {
	entries, err := a.Store.Entries(ctx, string(p.Org))
	if err != nil {
		return List{}, err
	}
	list := make([]Record, len(entries))
	for i, e := range entries {
		list[i] = *e.Record
	}
	slices.SortFunc(list, func(a, b Record) int { return b.Asked.Compare(a.Asked) })
	return List{Approvals: list}, nil
}

// Pending returns the pending requests of an organisation, sorted by expiry.
func (a Service) Pending(ctx context.Context, org string) ([]PendingApproval, error) {
	entries, err := a.Store.Entries(ctx, org)
	if err != nil {
		return nil, err
	}
	var list []PendingApproval
	for _, e := range entries {
		if r := e.Record; r.State == Pending && r.Until.After(a.Now()) {
			list = append(list, PendingApproval{
				DeniedBy: r.RefusedBy(),
				Org:      org, ID: r.ID, Team: r.Team, Key: r.Key, Call: r.Call, Summary: r.Summary, USD: r.USD, Per: string(r.Per), Until: r.Until.UTC(),
			})
		}
	}
	slices.SortFunc(list, func(x, y PendingApproval) int { return cmp.Or(x.Until.Compare(y.Until), cmp.Compare(x.ID, y.ID)) })
	return list, nil
}

func (a Service) grant(ctx context.Context, s adminapi.Principal, given granted) (*Record, error) {
	return a.answer(ctx, s, given.denied, func(next *Record) error {
		length := cmp.Or(time.Duration(given.For), grantTime)
		if length <= 0 || length > maxGrant {
			return adminapi.BadParam("for", "must be positive and at most %s", maxGrant)
		}
		most := cmp.Or(given.MaxUSD, next.USD)
		if most != "" {
			limit, err := catalog.ParseMoney(most)
			if err != nil {
				return adminapi.BadParam("max_usd", "must be an amount in USD, got %q", most)
			}
			if price, err := catalog.ParseMoney(next.USD); err == nil && limit < price {
				return adminapi.BadParam("max_usd", "must be at least the price of the request, %s USD per %s, got %s", next.USD, next.Per, most)
			}
		}
		next.State, next.Until, next.Answer.MaxUSD = Granted, next.Answer.At.Add(length), most
		return nil
	})
}

func (a Service) deny(ctx context.Context, s adminapi.Principal, given denied) (*Record, error) {
	return a.answer(ctx, s, given, func(next *Record) error {
		next.State, next.Until = Denied, next.Answer.At.Add(RequestTTL)
		return nil
	})
}

// answer replaces a request with the result of change. A grant can be denied until it is used.
func (a Service) answer(ctx context.Context, s adminapi.Principal, given denied, change func(next *Record) error) (*Record, error) {
	org := string(given.Org)
	by, err := s.RecordedName(given.By)
	switch {
	case err != nil:
		return nil, err
	case by == "" || len(by) > maxAnswerer || len(given.Reason) > maxReason:
		return nil, adminapi.BadParam("by", "by is required and limited to %d bytes, reason is limited to %d bytes", maxAnswerer, maxReason)
	}
	e, err := a.Store.Find(ctx, org, given.ID)
	if errors.Is(err, ErrNotFound) || err == nil && (e.Record == nil || e.Record.ID != given.ID) {
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("organisation %s has no approval request %q", org, given.ID)}
	}
	if err != nil {
		return nil, err
	}
	if e.Record.State == Used {
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("approval %s was already used by decision %s", given.ID, e.Record.UsedBy)}
	}
	next := *e.Record
	next.Answer = &Answer{By: by, Reason: given.Reason, At: e.Now}
	if err := change(&next); err != nil {
		return nil, err
	}
	_, swapped, err := a.Store.Swap(ctx, org, e, &next)
	if err != nil {
		return nil, err
	}
	if !swapped {
		return nil, adminapi.BadRequestError{Reason: "approval request " + given.ID + " has changed: read it again"}
	}
	return &next, nil
}
