package platform

import (
	"cmp"
	"net/http"
	"strings"
)

// podRequest is the body of a create.
type podRequest struct {
	Name       string `body:"name" need:"yes" min:"1"`
	TemplateID string `body:"templateId" min:"1"`
	containerPatch

	GPU         *gpuRequest `body:"gpu"`
	CPU         *cpuRequest `body:"cpu"`
	Cloud       string      `body:"cloud" enum:"SECURE COMMUNITY"`
	DataCenters []string    `body:"dataCenterIds"`
	Global      bool        `body:"globalNetworking"`
	Mounts      mountsPatch `body:"mounts"`
	Jupyter     *bool       `body:"startJupyter"`
	SSH         *bool       `body:"startSsh"`
}

func (r *podRequest) check(f fields) {
	r.Cloud = cmp.Or(r.Cloud, secureCloud)
	if !f.has("templateId") {
		f.require("image")
	}
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// rentPodLocked rents a pod, provisioned as the clock goes on. It applies every rule, in the
// order in which the platform tells them: template, rules across fields, access, money,
// capacity.
func (x *exchange) rentPodLocked(p *pod, r *podRequest) (then func(), err error) {
	t, err := x.templateLocked(r.TemplateID, false)
	if err != nil {
		return nil, err
	}
	if (r.GPU == nil) == (r.CPU == nil) {
		return nil, badRequest("exactly one of gpu and cpu must be given")
	}
	return func() { x.s.openPodLocked(x.acct, p, x.now) }, x.rentLocked(p, r, t, 0)
}

// rentLocked makes a pod of a request, or the model of all members of a cluster, in a place with room
// for them. Members take over the credential of their template as it is.
func (x *exchange) rentLocked(p *pod, r *podRequest, t *template, members int) (err error) {
	*p = pod{Name: r.Name, Cloud: r.Cloud, Wanted: r.Global, CreatedAt: x.now}
	if p.Container, err = r.over(t.Container, mergeEnv); err != nil {
		return err
	}
	if p.Mounts, err = r.Mounts.forCreate(r.CPU != nil, r.Cloud, t.Persistent); err != nil {
		return err
	}
	if members == 0 {
		err = x.checkRegistryLocked(p.Container.Registry)
	}
	if err != nil {
		return err
	}
	x.injectLocked(p, r.Jupyter, r.SSH, t)
	n, err := x.needLocked(p, r.DataCenters)
	if err != nil {
		return err
	}
	n.members = members
	if r.GPU != nil {
		return x.rentGPULocked(p, r.GPU, t, n)
	}
	return x.rentCPULocked(p, r.CPU, n)
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
	if len(r.CUDA) > 0 && r.MinCUDA != nil {
		return badRequest("gpu.allowedCudaVersions and gpu.minCudaVersion exclude each other")
	}
	if r.CUDA == nil && r.MinCUDA == nil {
		r.CUDA = t.CUDA
	}
	if err := x.acct.mayUse(p.Cloud, r.ID); err != nil {
		return err
	}
	if g := x.s.catalog.gpus[r.ID]; g != nil {
		p.Rate = g.price(p.Cloud) * float64(r.Count)
		p.GPU = &podGPU{ID: r.ID, Count: r.Count, VCPU: g.VCPU * r.Count, Memory: g.RAM * r.Count}
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
	p.Rate = f.Secure * float64(r.VCPU)
	p.CPU = &podCPU{ID: f.ID, VCPU: r.VCPU, Memory: f.memory(r.VCPU)}
	if err := x.canPay(p.Rate); err != nil {
		return err
	}
	p.DC, err = x.s.catalog.placeCPULocked(f, r.VCPU, n)
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
