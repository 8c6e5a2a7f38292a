package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// outage fails the commands on keys of decisions while it is set.
type outage struct{ atomic.Bool }

var errOutage = errors.New("the store of decisions is down")

func (o *outage) hits(cmds ...redis.Cmder) bool {
	return o.Load() && strings.Contains(fmt.Sprint(cmds), decisionsOf[:len(decisionsOf)-len("{acme}")])
}

// DialHook implements redis.Hook.
func (*outage) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.hits(cmd) {
			cmd.SetErr(errOutage)
			return errOutage
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !o.hits(cmds...) {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(errOutage)
		}
		return errOutage
	}
}

// A part of a page that cannot be read says so, and the other parts stay.
func TestAPageWithAFailingPart(t *testing.T) {
	t.Parallel()
	client, ok := world.Redis(t, miniredis.RunT(t).Addr()).(redistest.Conn)
	if !ok {
		t.Fatal("a client without hooks")
	}
	var down outage
	client.AddHook(&down)
	c := &console{text: strings.ReplaceAll(text, "PLATFORM", platform.RunT(t).URL)}
	c.gateway = world.Gateway(t, c.config(t, c.text), gateway.Deps{Redis: client})
	c.serve(t)
	root := c.as(t, "root")
	for _, failing := range []bool{false, true} {
		down.Store(failing)
		status, _, page := root.get(c.URL + "/ui/")
		_, tile, _ := strings.Cut(page, `aria-label="Denied or throttled, 24 h"`)
		tile, _, _ = strings.Cut(tile, "</section>")
		if status != http.StatusOK || strings.Contains(tile, "Unknown") != failing {
			t.Errorf("failing %t: %d, %s", failing, status, tile)
		}
		for _, part := range []string{`aria-label="Burn rate now"`, `<p class="figure">$0.00`, `id="attention"`, `id="budgets"`} {
			if !strings.Contains(page, part) {
				t.Errorf("failing %t: the page lacks %s", failing, part)
			}
		}
	}
}
