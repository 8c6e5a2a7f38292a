package gateway

import (
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
)

// state is one compiled configuration. It is immutable.
type state struct {
	*view.View
	callers  *callers.Callers
	pipeline *filter.Pipeline
	reader   *filter.Reader
	account  *upstream.Account
	runs     platform.Runs
	engine   *policies.Engine
	admins   *admin.Directory
}

// close closes idle connections.
func (s *state) close() {
	s.account.Upstream.Close()
	s.runs.Close()
}

// current holds the state in force. The state is replaced when the configuration is reloaded and when keys change. Each method loads the
// state separately, so a caller that needs several values of the same configuration must load the state once.
type current struct {
	atomic.Pointer[state]
	view    *view.Current          // of the same state, for parts that do not know state
	status  operator.GatewayStatus // of the configuration in force
	swapped chan struct{}          // signals a new state to Run
	started *settings.Config       // at process start: settings that require a restart are compared with it

	changing sync.Mutex // held while the state is replaced; guards closed
	closed   bool
}

// engine returns the policy engine in force, or nil before the first state.
func (c *current) engine() *policies.Engine {
	if now := c.Load(); now != nil {
		return now.engine
	}
	return nil
}

func (c *current) account() *upstream.Account { return c.Load().account }

func (c *current) admins() *admin.Directory { return c.Load().admins }

func (c *current) callers() *callers.Callers { return c.Load().callers }

func (c *current) pipeline() *filter.Pipeline { return c.Load().pipeline }

func (c *current) chain() *filter.Chain { return c.pipeline().Chain }

// signers returns the certificate authorities whose certificates identify callers.
func (c *current) signers() *x509.CertPool { return c.pipeline().Callers.Directory.Signers() }

// revocations returns the expiry times of the certificate revocation lists.
func (c *current) revocations() map[string]time.Time {
	return c.pipeline().Callers.Directory.Revocations()
}

// allows reports whether an open event stream may continue at a time. left is the time until it must end; 0 means no limit.
func (c *current) allows(s filter.Stream, at time.Time) (left time.Duration, ok bool) {
	now := c.Load()
	revision, ok := now.engine.Revision(s.Caller.Org)
	if !ok || s.Policies != "" && revision != s.Policies {
		return 0, false
	}
	until, ok := now.pipeline.Callers.Directory.StillAccepts(s.Caller, at)
	if !until.IsZero() {
		left = until.Sub(at)
	}
	return left, ok
}

// compiled returns the parts of the state in force that explanations use.
func (c *current) compiled() operator.Compiled {
	now := c.Load()
	return operator.Compiled{Config: now.Config, Account: now.account, Pipeline: now.pipeline, Reader: now.reader, Engine: now.engine}
}
