package platform

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The states of a sandbox.
const (
	sandboxCreating   = "CREATING"
	sandboxRunning    = "RUNNING"
	sandboxTerminated = "TERMINATED" // final
	sandboxFailed     = "FAILED"     // final
)

// Why a sandbox has ended, as its record says.
const (
	endedIdle       = "IDLE_TIMEOUT"
	endedLifetime   = "MAX_LIFETIME"
	endedDeleted    = "DELETED"
	endedUnpaid     = "INSUFFICIENT_BALANCE"
	endedFailed     = "FAILED"
	endedByPlatform = "PLATFORM"
)

const (
	defaultSandboxIdle     = 600    // seconds
	defaultSandboxLifetime = 3600   // seconds
	maxSandboxIdle         = 7200   // seconds; more is clamped
	maxSandboxLifetime     = 86_400 // seconds; more is clamped
	sandboxFlavor          = "cpu3c"
	sandboxVCPU            = 2
	sandboxDisk            = 10 // GB

	// What a sandbox costs is in no catalog: 2 vCPU with 4 GB are 0.026 USD per hour.
	sandboxVCPUHour = 0.009 // per vCPU
	sandboxGBHour   = 0.002 // per GB of memory
)

// sandbox is one sandbox. It is over when one of its two clocks, a delete or the end of
// the money ends it, and its record stays.
type sandbox struct {
	ID, Name       string
	Template       string // empty is none
	Image, Flavor  string
	VCPU, Memory   int // Memory in GB
	Labels         map[string]string
	Egress         string // empty is not given
	Allowed        []string
	Booted         map[string]string // the environment of the container
	Holds          stockKey
	Idle, Lifetime int64 // seconds, as they count
	CreatedAt      time.Time
	RunsAt         time.Time // RUNNING
	UpAt           time.Time // the container takes commands
	ActiveAt       time.Time
	EndedAt        time.Time // zero while it lives
	Reason         string
}

func (b *sandbox) stateAt(now time.Time) string {
	switch {
	case b.Reason == endedFailed:
		return sandboxFailed
	case !b.EndedAt.IsZero():
		return sandboxTerminated
	case now.Before(b.RunsAt):
		return sandboxCreating
	default:
		return sandboxRunning
	}
}

func (b *sandbox) idleExpires() time.Time { return b.ActiveAt.Add(time.Duration(b.Idle) * time.Second) }

func (b *sandbox) expires() time.Time {
	return b.CreatedAt.Add(time.Duration(b.Lifetime) * time.Second)
}

// due is when the first of the two clocks ends the sandbox.
func (b *sandbox) due() (at time.Time, reason string) {
	if b.idleExpires().Before(b.expires()) {
		return b.idleExpires(), endedIdle
	}
	return b.expires(), endedLifetime
}

// rate is what the sandbox costs per hour from its creation to its end.
func (b *sandbox) rate() float64 {
	return float64(b.VCPU)*sandboxVCPUHour + float64(b.Memory)*sandboxGBHour
}

// updatedAt is the last change of the record by now.
func (b *sandbox) updatedAt(now time.Time) time.Time {
	at := latest(b.ActiveAt, b.EndedAt)
	if !now.Before(b.RunsAt) && b.EndedAt.IsZero() {
		at = latest(at, b.RunsAt)
	}
	return at
}

func (x *exchange) showSandbox(b *sandbox) object {
	state := b.stateAt(x.now)
	o := object{
		"id", b.ID, "name", b.Name, "state", state, "templateId", optional(b.Template), "imageName", b.Image, "cpuFlavorId", b.Flavor,
		"idleTimeoutSeconds", b.Idle, "maxLifetimeSeconds", b.Lifetime, "lastActivityAt", b.ActiveAt, "idleExpiresAt", b.idleExpires(),
		"expiresAt", b.expires(), "createdAt", b.CreatedAt, "updatedAt", b.updatedAt(x.now), "labels", b.Labels,
		"terminationReason", optional(b.Reason), "terminatedAt", b.EndedAt,
	}
	if state == sandboxRunning {
		o = append(o, "compute", object{
			"vcpuCount", b.VCPU, "memoryInGb", b.Memory, "containerDiskInGb", sandboxDisk, "costPerHr", b.rate(),
		})
	}
	if b.Egress != "" {
		o = append(o, "egressMode", b.Egress, "egressAllowlist", b.Allowed)
	}
	return o
}

// sandboxRoutes is every operation on sandboxes.
func sandboxRoutes() []route {
	return append(sandboxes().routes(),
		changeRoute(http.MethodPost, "/v2/sandboxes/{id}/exec", "execSandbox", withBody(sandboxes().on, (*exchange).execLocked)),
		getRoute("/v2/sandboxes/{id}/logs", "getSandboxLogs", logs(sandboxes(), (*exchange).sandboxLogLocked), logParameters()...),
	)
}

func sandboxes() resource[sandbox] {
	return resource[sandbox]{
		one: "Sandbox", many: "Sandboxes", path: "/v2/sandboxes", member: "sandboxes", noun: "sandbox",
		query:   []string{"state", "labels" + repeated},
		filter:  sandboxFilter,
		table:   func(a *account) *table[sandbox] { return &a.sandboxes },
		show:    (*exchange).showSandbox,
		id:      func(b *sandbox) *string { return &b.ID },
		unknown: http.StatusBadRequest,
		create: func(x *exchange) (func(*sandbox) (func(), error), error) {
			if x.s.opts.SandboxEgress {
				return writes((*exchange).rentSandboxLocked)(x)
			}
			return writes(func(x *exchange, b *sandbox, r *sandboxRequest) (func(), error) {
				return x.rentSandboxLocked(b, &egressRequest{sandboxRequest: *r})
			})(x)
		},
		remove: func(x *exchange, b *sandbox) error {
			x.s.endSandboxLocked(x.acct, b, x.now, endedDeleted)
			return nil
		},
	}
}

// sandboxFilter selects by state and labels; without a state, those that live.
func sandboxFilter(x *exchange, p *params) (shown func(*sandbox) bool, scope string) {
	states := []string{sandboxCreating, sandboxRunning}
	if p.has("state") {
		states = []string{p.enum("state", sandboxCreating, sandboxRunning, sandboxTerminated, sandboxFailed)}
	}
	for _, label := range p.q["labels"] {
		if !strings.Contains(label, "=") {
			p.add("query.labels", "must read key=value, but got '%s'", label)
		}
	}
	return func(b *sandbox) bool {
		return slices.Contains(states, b.stateAt(x.now)) && !slices.ContainsFunc(p.q["labels"], func(label string) bool {
			key, value, _ := strings.Cut(label, "=")
			got, has := b.Labels[key]
			return !has || got != value
		})
	}, ""
}

// sandboxRequest is the body of a create; numbers are zero if they are left out.
type sandboxRequest struct {
	Image    *string           `body:"imageName" min:"1"`
	Template *string           `body:"templateId" min:"1"`
	Name     string            `body:"name"`
	Flavor   string            `body:"cpuFlavorId" min:"1"`
	Place    string            `body:"dataCenterId" min:"1"`
	VCPU     int               `body:"vcpuCount" min:"1"`
	Memory   int               `body:"memoryInGb" min:"1"`
	Env      map[string]string `body:"env"`
	Labels   map[string]string `body:"labels"`
	Idle     int64             `body:"idleTimeoutSeconds" min:"1"`
	Lifetime int64             `body:"maxLifetimeSeconds" min:"1"`
}

// egressRequest is sandboxRequest with Options.SandboxEgress.
type egressRequest struct {
	sandboxRequest

	Egress  string   `body:"egressMode" enum:"ALLOW_ALL ALLOW_LIST DENY_ALL"`
	Allowed []string `body:"egressAllowlist"`
}

// rentSandboxLocked applies the rules of a create: image or template, names, access,
// money, capacity. The clocks are clamped silently.
func (x *exchange) rentSandboxLocked(b *sandbox, r *egressRequest) (func(), error) {
	if (r.Image == nil) == (r.Template == nil) {
		return nil, badRequest("exactly one of imageName and templateId must be given")
	}
	t := &template{}
	if r.Template != nil {
		if t = x.s.readableTemplateLocked(x.acct, *r.Template); t == nil {
			return nil, invalid("$.templateId: no template is called '" + *r.Template + "'")
		}
		r.Image = &t.Container.Image
	}
	f := x.s.catalog.cpus[cmp.Or(r.Flavor, sandboxFlavor)]
	if f == nil {
		return nil, invalid("$.cpuFlavorId: no CPU flavor is called '" + cmp.Or(r.Flavor, sandboxFlavor) + "'")
	}
	if r.Place != "" && x.s.catalog.dcs[r.Place] == nil {
		return nil, invalid("$.dataCenterId: no data center is called '" + r.Place + "'")
	}
	*b = sandbox{
		Name: r.Name, Template: t.ID, Image: *r.Image, Flavor: f.ID, VCPU: cmp.Or(r.VCPU, sandboxVCPU), Labels: r.Labels,
		Egress: r.Egress, Allowed: r.Allowed, CreatedAt: x.now, ActiveAt: x.now, RunsAt: x.now.Add(x.s.timing.Provision),
		Idle:     min(cmp.Or(r.Idle, defaultSandboxIdle), x.acct.maxIdle),
		Lifetime: min(cmp.Or(r.Lifetime, defaultSandboxLifetime), x.acct.maxLifetime),
		Booted:   x.acct.bootedLocked(mergedEnv(t.Container.Env, r.Env, mergeEnv)),
	}
	b.Memory, b.UpAt = cmp.Or(r.Memory, f.memory(b.VCPU)), b.RunsAt.Add(x.s.timing.Boot)
	return func() {
		b.Name = cmp.Or(b.Name, "sandbox-"+b.ID)
		x.acct.chargeLocked(meterSandbox, b.ID, amounts{sandboxAmount: b.rate()}, x.now)
	}, x.placeSandboxLocked(b, f, r.Place)
}

// placeSandboxLocked takes the machine of a sandbox, in the data center that is preferred
// or in any other.
func (x *exchange) placeSandboxLocked(b *sandbox, f *CPU, preferred string) error {
	if err := x.acct.mayUse(secureCloud, ""); err != nil {
		return err
	}
	if err := x.canPay(b.rate()); err != nil {
		return err
	}
	for _, dc := range append([]string{preferred}, f.DataCenters...) {
		if b.Holds = (stockKey{f.ID, "", dc}); x.s.catalog.takeLocked(b.Holds, b.VCPU) {
			return nil
		}
	}
	return refuse(http.StatusServiceUnavailable, "there is no capacity for this sandbox")
}

// endSandboxLocked ends a sandbox and its bill. One that is over stays as it is.
func (s *Server) endSandboxLocked(a *account, b *sandbox, at time.Time, reason string) {
	if !b.EndedAt.IsZero() {
		return
	}
	b.EndedAt, b.Reason = at, reason
	s.catalog.putBackLocked(b.Holds, b.VCPU)
	a.chargeLocked(meterSandbox, b.ID, amounts{}, at)
	a.sandboxes.touch(b.ID)
	s.notifyLocked()
}
