package platform

import (
	"net/http"
	"strings"
)

// podRequest is the body of a create, checked for its shape only.
type podRequest struct {
	name         string
	templateID   string
	gpu          *gpuRequest
	cpu          *cpuRequest
	cloud        string
	dataCenters  []string
	global       bool
	ssh, jupyter *bool
	mounts       mountsPatch
	container    containerPatch
}

func podNames() []string {
	return containerNames("name", "templateId", "gpu", "cpu", "cloud", "dataCenterIds", "globalNetworking", "mounts", "startJupyter", "startSsh")
}

func readPodRequest(f fields) *podRequest {
	r := &podRequest{cloud: secureCloud}
	f.require("name")
	if !f.has("templateId") {
		f.require("image")
	}
	r.name, _ = f.text("name", 1)
	r.templateID, _ = f.text("templateId", 1)
	r.container = f.container()
	r.gpu = f.gpu()
	if one, ok := f.child("cpu", "id", "vcpuCount"); ok {
		r.cpu = one.cpu()
	}
	if cloud, ok := f.enum("cloud", secureCloud, communityCloud); ok {
		r.cloud = cloud
	}
	r.dataCenters, _ = f.list("dataCenterIds", nil)
	r.global = isSet(f.flag("globalNetworking"))
	r.mounts = f.mounts(true)
	r.jupyter, r.ssh = f.flag("startJupyter"), f.flag("startSsh")
	return r
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// rentPodLocked rents a pod, provisioned as the clock goes on. It applies every rule, in the
// order in which the platform tells them: template, rules across fields, access, money,
// capacity.
func (x *exchange) rentPodLocked(p *pod, r *podRequest) (then func(), err error) {
	t, err := x.templateLocked(r.templateID, false)
	if err != nil {
		return nil, err
	}
	if (r.gpu == nil) == (r.cpu == nil) {
		return nil, badRequest("exactly one of gpu and cpu must be given")
	}
	return func() { x.s.openPodLocked(x.acct, p, x.now) }, x.rentLocked(p, r, t, 0)
}

// rentLocked makes a pod of a request, or the model of all members of a cluster, in a place with room
// for them. Members take over the credential of their template as it is.
func (x *exchange) rentLocked(p *pod, r *podRequest, t *template, members int) (err error) {
	*p = pod{Name: r.name, Cloud: r.cloud, Wanted: r.global, CreatedAt: x.now}
	if p.Container, err = r.container.over(t.Container, mergeEnv); err != nil {
		return err
	}
	if p.Mounts, err = r.mounts.forCreate(r.cpu != nil, r.cloud, t.Persistent); err != nil {
		return err
	}
	if members == 0 {
		err = x.checkRegistryLocked(p.Container.Registry)
	}
	if err != nil {
		return err
	}
	x.injectLocked(p, r.jupyter, r.ssh, t)
	n, err := x.needLocked(p, r.dataCenters)
	if err != nil {
		return err
	}
	n.members = members
	if r.gpu != nil {
		return x.rentGPULocked(p, r.gpu, t, n)
	}
	return x.rentCPULocked(p, r.cpu, n)
}

// needLocked is what the pod asks of the place it stands in.
func (x *exchange) needLocked(p *pod, dataCenters []string) (need, error) {
	n := need{cloud: p.Cloud, dataCenters: dataCenters, globalNetwork: p.Wanted}
	if p.Mounts.Network != nil {
		v := x.acct.volumes.get(p.Mounts.Network.VolumeID)
		if v == nil {
			return n, badRequest("no network volume is called '" + p.Mounts.Network.VolumeID + "'")
		}
		n.volumeDC = v.DataCenter
	}
	return n, nil
}

// rentGPULocked finds the pod a place, after settling what CUDA versions will
// do: the body's word on them replaces the template's as a whole.
func (x *exchange) rentGPULocked(p *pod, r *gpuRequest, t *template, n need) error {
	if len(r.cuda) > 0 && r.minCUDA != nil {
		return badRequest("gpu.allowedCudaVersions and gpu.minCudaVersion exclude each other")
	}
	if r.cuda == nil && r.minCUDA == nil {
		r.cuda = t.CUDA
	}
	if err := x.acct.mayUse(p.Cloud, r.id); err != nil {
		return err
	}
	if g := x.s.catalog.gpus[r.id]; g != nil {
		p.Rate = g.price(p.Cloud) * float64(r.count)
		p.GPU = &podGPU{ID: r.id, Count: r.count, VCPU: g.VCPU * r.count, Memory: g.RAM * r.count}
	}
	if err := x.canPay(p.Rate * float64(max(n.members, 1))); err != nil {
		return err
	}
	var err error
	p.DC, p.CUDA, err = x.s.catalog.placeGPULocked(r, n)
	return err
}

func (x *exchange) rentCPULocked(p *pod, r *cpuRequest, n need) error {
	f, err := x.s.catalog.flavorFor(r)
	if err != nil {
		return err
	}
	if err := x.acct.mayUse(p.Cloud, ""); err != nil {
		return err
	}
	p.Rate = f.Secure * float64(r.vcpu)
	p.CPU = &podCPU{ID: f.ID, VCPU: r.vcpu, Memory: f.memory(r.vcpu)}
	if err := x.canPay(p.Rate); err != nil {
		return err
	}
	p.DC, err = x.s.catalog.placeCPULocked(f, r.vcpu, n)
	return err
}

// canPay wants one hour of a rate to be covered.
func (x *exchange) canPay(rate float64) error {
	if x.acct.funds.Balance < rate || x.acct.funds.Balance <= 0 {
		return refuse(http.StatusPaymentRequired, "insufficient balance: one hour costs "+string(appendValue(nil, rate))+" USD")
	}
	return nil
}

// injectLocked adds the variables that startJupyter and startSsh stand for,
// unless the environment has them already.
func (x *exchange) injectLocked(p *pod, jupyter, ssh *bool, t *template) {
	flag := func(body *bool, otherwise bool) bool {
		if body != nil {
			return *body
		}
		return otherwise
	}
	env := map[string]string{}
	if flag(jupyter, t.Jupyter) {
		env["JUPYTER_PASSWORD"] = x.s.newIDLocked(func(string) bool { return false })
	}
	if flag(ssh, t.SSH) && len(x.acct.sshKeys) > 0 {
		env["PUBLIC_KEY"] = strings.Join(x.acct.sshKeys, "\n")
	}
	p.Container.Env = mergedEnv(env, p.Container.Env, mergeEnv)
}
