package platform

// listPods answers the account's pods, oldest first; members of clusters only
// when they are asked for.
func (x *exchange) listPods() (reply, error) {
	p := &params{q: x.query}
	members := isSet(p.flag("includeClusterPods"))
	if err := p.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	b := make([]byte, 0, 64+1024*x.acct.pods.len())
	b = append(b, `{"pods":[`...)
	first := true
	for _, p := range x.acct.pods.order {
		if p.Cluster != nil && !members {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = p.append(b, x.now, false)
	}
	return ok(append(b, `]}`...)), nil
}

// ownPodLocked is the pod the path names.
func (x *exchange) ownPodLocked() (*pod, error) {
	if p := x.acct.pods.get(x.params[0]); p != nil {
		return p, nil
	}
	return nil, notFound("pod")
}

// loosePodLocked is the pod the path names, unless it belongs to a cluster.
func (x *exchange) loosePodLocked() (*pod, error) {
	p, err := x.ownPodLocked()
	if err == nil && p.Cluster != nil {
		return nil, conflict("the pod is a member of cluster " + p.Cluster.ID + " and changes with it only")
	}
	return p, err
}

func (x *exchange) getPod() (reply, error) {
	x.lock()
	defer x.unlock()
	p, err := x.ownPodLocked()
	if err != nil {
		return reply{}, err
	}
	return ok(p.append(make([]byte, 0, 1024), x.now, false)), nil
}

func (x *exchange) deletePod() (reply, error) {
	x.lock()
	defer x.unlock()
	p, err := x.loosePodLocked()
	if err != nil {
		return reply{}, err
	}
	x.s.terminatePodLocked(x.acct, p, x.now)
	return noContent(), nil
}

// podAction starts, stops, restarts or terminates a pod, if its state allows.
func (x *exchange) podAction() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	var c checker
	action := ""
	if f, isObject := c.object("$", body, "action"); isObject {
		f.require("action")
		action, _ = f.enum("action", "start", "stop", "restart", "terminate")
	}
	if err := c.err(); err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	p, err := x.loosePodLocked()
	if err != nil {
		return reply{}, err
	}
	return x.actLocked(p, action)
}

func (x *exchange) actLocked(p *pod, action string) (reply, error) {
	status := p.statusAt(x.now)
	invalid := conflict("the pod is " + status + ": " + action + " is not possible")
	switch action {
	case "start":
		if status != statusExited && status != statusError {
			return reply{}, invalid
		}
		if err := x.canPay(p.Rate); err != nil {
			return reply{}, err
		}
		if err := x.s.startPodLocked(x.acct, p, x.now); err != nil {
			return reply{}, err
		}
	case "stop":
		if status == statusExited || status == statusError {
			return reply{}, invalid
		}
		if p.Locked {
			return reply{}, conflict("the pod is locked: stop is not possible")
		}
		x.s.stopPodLocked(x.acct, p, x.now)
	case "restart":
		if status != statusRunning {
			return reply{}, invalid
		}
		x.s.restartPodLocked(x.acct, p, x.now)
	default:
		x.s.terminatePodLocked(x.acct, p, x.now)
		return noContent(), nil
	}
	return ok(p.append(nil, x.now, false)), nil
}

// updatePod changes what can be changed of a pod that exists.
func (x *exchange) updatePod() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	u, err := parsePodUpdate(body)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	p, err := x.loosePodLocked()
	if err != nil {
		return reply{}, err
	}
	if err := x.changePodLocked(p, u); err != nil {
		return reply{}, err
	}
	return ok(p.append(nil, x.now, false)), nil
}

// podUpdate is the body of a change, checked for its shape only.
type podUpdate struct {
	name           *string
	templateID     *string
	locked, global *bool
	mounts         mountsPatch
	container      containerPatch
}

func parsePodUpdate(body any) (*podUpdate, error) {
	var c checker
	f, isObject := c.object("$", body, containerNames("name", "templateId", "globalNetworking", "locked", "mounts")...)
	if !isObject {
		return nil, c.err()
	}
	u := &podUpdate{
		name:       f.textPtr("name", 1),
		templateID: f.textPtr("templateId", 1),
		locked:     f.flag("locked"),
		global:     f.flag("globalNetworking"),
		mounts:     f.mounts(true),
		container:  f.container(),
	}
	return u, c.err()
}

// changePodLocked applies a change as a whole or not at all.
func (x *exchange) changePodLocked(p *pod, u *podUpdate) error {
	base, mode := p.Container, replaceEnv
	if u.templateID != nil {
		t, err := x.templateLocked(*u.templateID, false)
		if err != nil {
			return err
		}
		base, mode = t.Container, mergeEnv
	}
	changed, err := u.container.over(base, mode)
	if err != nil {
		return err
	}
	mounted, err := u.mounts.forUpdate(p.Mounts)
	if err != nil {
		return err
	}
	if err := x.checkRegistryLocked(changed.Registry); err != nil {
		return err
	}
	if isSet(u.global) && (p.GPU == nil || !x.s.catalog.isNVIDIA(p.GPU.ID) || !x.s.catalog.dcs[p.DC].GlobalNetwork) {
		return badRequest("global networking needs an NVIDIA GPU in a data center that offers it")
	}
	p.Container, p.Mounts = changed, mounted
	if u.name != nil {
		p.Name = *u.name
	}
	if u.locked != nil {
		p.Locked = *u.locked
	}
	if u.global != nil {
		p.Wanted = *u.global
	}
	x.s.chargePodLocked(x.acct, p, x.now)
	return nil
}
