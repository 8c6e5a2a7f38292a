package platform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// followed runs a Follower over a description until it has looked, and returns what it refuses, what it measures and its log.
func followed(t *testing.T, text string, err error) (refused []string, series int, log string) {
	t.Helper()
	api, fault := schema.Load()
	if fault != nil {
		t.Fatal(fault)
	}
	var out bytes.Buffer
	reader := sdk.NewManualReader()
	reads := 0
	read := func(ctx context.Context) ([]byte, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the read has no bound")
		}
		reads++
		return []byte(text), err
	}
	f := NewFollower(api, read, slog.New(slog.NewTextHandler(&out, nil)), sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-done; err != nil || reads != 1 {
			t.Errorf("%d reads, and the task ended with %v, want one read", reads, err)
		}
	})
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.WithoutCancel(t.Context()), &rm); err != nil {
		t.Fatal(err)
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if gauge, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == "tollgate.platform.operation.refused" {
				series += len(gauge.DataPoints)
			}
		}
	}
	return f.Refused(), series, out.String()
}

func TestFollower(t *testing.T) {
	refused, series, log := followed(t, `{"paths":{"/v2/pods":{"get":{}},"/v2/tags":{"get":{},"post":{}}}}`, nil)
	if diff := cmp.Diff([]string{"GET /v2/tags", "POST /v2/tags"}, refused); diff != "" || series != 2 || strings.Count(log, "\n") != 1 || !strings.Contains(log, "POST /v2/tags") {
		t.Errorf("%d series, log %s, refused (-want +got):\n%s", series, log, diff)
	}
	for name, tc := range map[string]struct {
		text string
		err  error
		log  string
	}{
		"nothing new":   {text: `{"paths":{"/v2/pods":{"get":{}}}}`},
		"a page":        {text: `<html>`, log: "cannot read"},
		"no connection": {err: errors.New("connection refused"), log: "connection refused"},
	} {
		refused, series, log := followed(t, tc.text, tc.err)
		if len(refused) > 0 || series > 0 || !strings.Contains(log, tc.log) || (log == "") != (tc.log == "") {
			t.Errorf("%s: refused %v, %d series, log %q", name, refused, series, log)
		}
	}
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `"/v2/new%d":{"get":{}},`, i)
	}
	if refused, series, _ := followed(t, `{"paths":{`+many.String()+`"/v2/pods":{"get":{}}}}`, nil); len(refused) != maxRefused || series != maxRefused {
		t.Errorf("%d operations and %d series, want %d", len(refused), series, maxRefused)
	}
}

// A platform that does not answer in time is logged, and the end of the gateway is not.
func TestFollowerWaits(t *testing.T) {
	for wait, want := range map[time.Duration]bool{time.Second: false, time.Minute: true} {
		var out bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			f := &Follower{logger: slog.New(slog.NewTextHandler(&out, nil)), read: func(ctx context.Context) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			ctx, stop := context.WithTimeout(t.Context(), wait)
			defer stop()
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if strings.Contains(out.String(), "cannot read") != want {
			t.Errorf("ended after %s: log %q, want it there: %t", wait, out.String(), want)
		}
	}
}
