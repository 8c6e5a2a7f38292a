package rls

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Service is the rate limit service.
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	table   func() Table
	counter filter.Counter
	now     func() time.Time
	logger  *slog.Logger
	logged  rate.Sometimes
}

// New returns a Service that counts by a counter. Table returns the configuration in
// force; it is called once for each request. The logger
// hears of requests that cannot be counted, once a minute at most.
func New(table func() Table, counter filter.Counter, now func() time.Time, logger *slog.Logger) *Service {
	return &Service{table: table, counter: counter, now: now, logger: logger, logged: rate.Sometimes{First: 1, Interval: time.Minute}}
}

// ShouldRateLimit implements the service. A request that cannot be counted is an
// error, InvalidArgument or Unavailable; what becomes of it is the filter's
// failure_mode_deny.
func (s *Service) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	res, err := s.limit(ctx, req)
	if err != nil {
		s.logged.Do(func() {
			s.logger.WarnContext(ctx, "rate limit request cannot be counted", "domain", req.GetDomain(), "error", err.Error())
		})
	}
	return res, err
}

func (s *Service) limit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	table, now := s.table(), s.now()
	domain := table.domain(req.GetDomain())
	if domain == nil {
		return nil, status.Errorf(codes.InvalidArgument, "envoy.ratelimit has no domain %q", req.GetDomain())
	}
	if err := checkDescriptors(req.GetDescriptors()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	org, err := table.organisation(ctx, domain, req.GetDescriptors(), now)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	readings := make([]reading, len(req.GetDescriptors()))
	for i, desc := range req.GetDescriptors() {
		if readings[i], err = table.read(ctx, domain, org, desc, now); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		readings[i].units = units(req, desc)
	}
	scopes := merged(readings)
	if len(scopes) > ratelimit.MaxScopes {
		return nil, status.Errorf(codes.InvalidArgument, "%d quotas in one request, want at most %d", len(scopes), ratelimit.MaxScopes)
	}
	if slices.ContainsFunc(readings, func(r reading) bool { return r.refused }) {
		return answer(readings, scopes, &ratelimit.Decision{Allowed: false}), nil
	}
	d := ratelimit.Decision{Allowed: true, Source: ratelimit.SourceNone}
	if len(scopes) > 0 {
		failure := domain.Failure
		if failure == "" {
			failure = table.Tenants[org].Failure[ratelimit.ClassWrite]
		}
		d, err = s.counter.Take(ctx, ratelimit.Take{Org: org, Scopes: scopes, Class: ratelimit.ClassWrite, Failure: failure, Each: true})
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	return answer(readings, scopes, &d), nil
}

// units returns how much a descriptor takes. More than any quota holds is one more
// than that.
func units(req *ratelimitv3.RateLimitRequest, desc *commonv3.RateLimitDescriptor) int64 {
	hits := uint64(max(1, req.GetHitsAddend()))
	if own := desc.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	return int64(min(hits, ratelimit.MaxQuota+1))
}

// merged returns the scopes of all descriptors. One that several name is taken from
// for each of them, by the lowest of their quotas.
func merged(readings []reading) []ratelimit.Scope {
	var scopes []ratelimit.Scope
	for _, r := range readings {
		for _, s := range r.scopes {
			i := slices.IndexFunc(scopes, func(other ratelimit.Scope) bool { return other.Ref() == s.Ref() })
			if i < 0 {
				s.Cost = r.units
				scopes = append(scopes, s)
				continue
			}
			same := &scopes[i]
			same.Cost += r.units
			same.Limit = ratelimit.Limit{
				Minute: lower(same.Limit.Minute, s.Limit.Minute), Hour: lower(same.Limit.Hour, s.Limit.Hour), Day: lower(same.Limit.Day, s.Limit.Day),
			}
		}
	}
	return scopes
}

// answer words a decision on scopes, for each descriptor and for all of them.
func answer(readings []reading, scopes []ratelimit.Scope, d *ratelimit.Decision) *ratelimitv3.RateLimitResponse {
	res := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	if !d.Allowed {
		res.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	for _, r := range readings {
		res.Statuses = append(res.Statuses, descriptorStatus(r, scopes, d))
	}
	if len(d.Windows) == 0 && len(d.Violated) == 0 {
		return res
	}
	header := make(http.Header, 3)
	d.WriteHeaders(header)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		res.ResponseHeadersToAdd = append(res.ResponseHeadersToAdd, &corev3.HeaderValue{Key: strings.ToLower(name), Value: header.Get(name)})
	}
	return res
}

// descriptorStatus tells of the window of a descriptor that matters most: if it is
// over the limit the one to be waited for longest, otherwise the one with the least
// left.
func descriptorStatus(r reading, scopes []ratelimit.Scope, d *ratelimit.Decision) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	st := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	if r.refused {
		st.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	var tells *ratelimit.Window
	for _, own := range r.scopes {
		i := slices.IndexFunc(scopes, func(s ratelimit.Scope) bool { return s.Ref() == own.Ref() })
		if i >= len(d.Each) { // nothing is known of it
			continue
		}
		for j := range d.Each[i] {
			w := &d.Each[i][j]
			violated := slices.ContainsFunc(d.Violated, func(v ratelimit.Violation) bool { return v.Scope == own.Ref() && v.Window == w.Name })
			over := st.Code == ratelimitv3.RateLimitResponse_OVER_LIMIT
			switch {
			case violated && (!over || w.Reset > tells.Reset), !violated && !over && (tells == nil || w.Remaining < tells.Remaining):
				tells = w
				st.CurrentLimit = &ratelimitv3.RateLimitResponse_RateLimit{Name: own.Ref().String(), RequestsPerUnit: narrow(w.Limit), Unit: unit(w.Name)}
			}
			if violated {
				st.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
			}
		}
	}
	if tells != nil {
		st.LimitRemaining, st.DurationUntilReset = narrow(tells.Remaining), durationpb.New(tells.Reset)
	}
	return st
}

// unit is a window as the protocol names it.
func unit(window string) ratelimitv3.RateLimitResponse_RateLimit_Unit {
	return ratelimitv3.RateLimitResponse_RateLimit_Unit(ratelimitv3.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(window)])
}

// narrow is a count of the limiter as the protocol can say it.
func narrow(n int64) uint32 { return uint32(min(max(0, n), math.MaxUint32)) }
