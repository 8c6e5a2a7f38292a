package platform

import (
	"net/http"
	"slices"
	"strconv"
)

// podFilter shows members of clusters only when they are asked for.
func podFilter(_ *exchange, p *params) (shown func(*pod) bool, scope string) {
	members := isSet(p.flag("includeClusterPods"))
	return func(p *pod) bool { return members || p.Cluster == nil }, "includeClusterPods=" + strconv.FormatBool(members)
}

// podRoutes is every operation on pods.
func podRoutes() []route {
	return append(pods().routes(),
		getRoute("/v2/pods/{id}/logs", "getPodLogs", logs(pods(), (*exchange).podLogLocked), logParameters()...),
		changeRoute(http.MethodPost, "/v2/pods/{id}/action", "podAction", withBody(pods().change, (*exchange).actLocked)),
	)
}

func pods() resource[pod] {
	return resource[pod]{
		one: "Pod", many: "Pods", path: "/v2/pods", member: "pods", noun: "pod", paged: true,
		query: []string{"includeClusterPods"}, filter: podFilter,
		table:  func(a *account) *table[pod] { return &a.pods },
		show:   (*exchange).showPod,
		id:     func(p *pod) *string { return &p.ID },
		create: writes((*exchange).rentPodLocked),
		update: writes((*exchange).changePodLocked),
		fixed:  (*pod).fixed,
		remove: func(x *exchange, p *pod) error {
			x.s.terminatePodLocked(x.acct, p, x.now)
			return nil
		},
	}
}

// fixed refuses to change a pod that belongs to a cluster.
func (p *pod) fixed() error {
	if p.Cluster == nil {
		return nil
	}
	return conflict("the pod is a member of cluster " + p.Cluster.ID + " and changes with it only")
}

// podAction is the body of an action.
type podAction struct {
	Action string `body:"action" need:"yes" enum:"start stop restart terminate"`
}

// actLocked starts, stops, restarts or terminates a pod, if its state allows.
func (x *exchange) actLocked(p *pod, want *podAction) (reply, error) {
	status := p.statusAt(x.now)
	if !slices.Contains(actions(status), want.Action) {
		return reply{}, conflict("the pod is " + status + ": " + want.Action + " is not possible")
	}
	switch want.Action {
	case "start":
		if err := x.canPay(p.Rate); err != nil {
			return reply{}, err
		}
		if err := x.s.startPodLocked(x.acct, p, x.now); err != nil {
			return reply{}, err
		}
	case "stop":
		if p.Locked {
			return reply{}, conflict("the pod is locked: stop is not possible")
		}
		x.s.stopPodLocked(x.acct, p, x.now)
	case "restart":
		x.s.restartPodLocked(x.acct, p, x.now)
	default:
		x.s.terminatePodLocked(x.acct, p, x.now)
		return noContent(), nil
	}
	return ok(x.showPod(p)), nil
}

// podUpdate is the body of a change.
type podUpdate struct {
	Name       *string     `body:"name" min:"1"`
	TemplateID *string     `body:"templateId" min:"1"`
	Locked     *bool       `body:"locked"`
	Global     *bool       `body:"globalNetworking"`
	Mounts     mountsPatch `body:"mounts"`
	containerPatch
}

// changePodLocked applies a change as a whole or not at all.
func (x *exchange) changePodLocked(p *pod, u *podUpdate) (func(), error) {
	base, mode := p.Container, replaceEnv
	if u.TemplateID != nil {
		t, err := x.templateLocked(*u.TemplateID, false)
		if err != nil {
			return nil, err
		}
		base, mode = t.Container, mergeEnv
	}
	changed, err := u.over(base, mode)
	if err != nil {
		return nil, err
	}
	mounted, err := u.Mounts.forUpdate(p.Mounts)
	if err != nil {
		return nil, err
	}
	if err := x.checkRegistryLocked(changed.Registry); err != nil {
		return nil, err
	}
	if isSet(u.Global) && (p.GPU == nil || !x.s.catalog.isNVIDIA(p.GPU.ID) || !x.s.catalog.dcs[p.DC].GlobalNetwork) {
		return nil, badRequest("global networking needs an NVIDIA GPU in a data center that offers it")
	}
	p.Container, p.Mounts = changed, mounted
	set(&p.Name, u.Name)
	set(&p.Locked, u.Locked)
	set(&p.Wanted, u.Global)
	x.s.chargePodLocked(x.acct, p, x.now)
	return nil, nil
}
