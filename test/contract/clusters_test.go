package contract

import (
	"strings"
	"testing"
)

func clusters(t *testing.T, c *client) {
	t.Helper()
	body := `{"name":"contract","type":"SLURM","image":"alpine:3","compute":{"gpuTypeId":"` + c.gpu + `","gpuCountPerPod":1,"podCount":2},"ports":["22/tcp"]}`
	for _, one := range []struct {
		status   int
		old, now string
	}{
		{422, `"podCount":2`, `"podCount":1`},
		{422, `"podCount":2`, `"podCount":251`},
		{422, `"name":"contract"`, `"name":"contract","registry":null`},
		{400, `"name":"contract"`, `"name":"contract","templateId":"t"`},
		{400, `"gpuCountPerPod":1`, `"gpuCountPerPod":99`},
	} {
		c.want(t, one.status, "createCluster", strings.Replace(body, one.old, one.now, 1))
	}
	made := c.want(t, 201, "createCluster", body)
	id := made.text("id")
	c.tidy(t, "deleteCluster", id)
	if made.number("pods.total") != 2 || made.number("compute.podCount") != 2 {
		t.Errorf("got %s", made.body)
	}
	up := c.await(t, "cluster "+id, func() answer { return c.want(t, 200, "getCluster", "", id) },
		func(a answer) bool { return a.number("pods.byStatus.RUNNING") == 2 })
	if up.text("primary.podId") == "" || up.text("network.cidr") == "" || up.text("dataCenterId") == "" {
		t.Errorf("up: got %s", up.body)
	}
	members := c.want(t, 200, "listClusterPods", "", id)
	roles := map[string]int{}
	for i := range members.list("pods") {
		m := answer{value: members.list("pods")[i]}
		roles[m.text("cluster.role")]++
		if m.text("cluster.id") != id {
			t.Errorf("member of another cluster: %v", m.value)
		}
		if m.text("cluster.role") == "SLURM_CONTROLLER" && (m.number("cluster.rank") != 0 || m.text("id") != up.text("primary.podId")) {
			t.Errorf("the controller is the entry node, got %v", m.at("cluster"))
		}
	}
	if roles["SLURM_CONTROLLER"] != 1 || roles["SLURM_COMPUTE"] != 1 {
		t.Errorf("roles: got %v", roles)
	}
	pod := up.text("primary.podId")
	if strings.Contains(string(c.want(t, 200, "listPods", "").body), pod) {
		t.Error("members are listed unasked")
	}
	if !strings.Contains(string(c.want(t, 200, "listPods", "", "?includeClusterPods=true").body), pod) {
		t.Error("members are not listed when asked for")
	}
	c.want(t, 409, "updatePod", `{"name":"x"}`, pod)
	c.want(t, 409, "deletePod", "", pod)
	c.want(t, 409, "podAction", `{"action":"stop"}`, pod)
	c.want(t, 422, "updateCluster", `{}`, id)
	if got := c.want(t, 200, "updateCluster", `{"name":"renamed"}`, id).text("name"); got != "renamed" {
		t.Errorf("renamed: got %q", got)
	}
	c.want(t, 404, "updateCluster", `{"name":"x"}`, "nope")
	if !strings.Contains(string(c.want(t, 200, "listClusters", "").body), id) {
		t.Error("the cluster is not listed")
	}
	c.want(t, 204, "deleteCluster", "", id)
	c.await(t, "the end of cluster "+id, func() answer { return c.call(t, "getCluster", "", id) },
		func(a answer) bool { return a.status == 404 })
	clusterFromTemplate(t, c)
}

// clusterFromTemplate: a template excludes what it has itself, and the cluster keeps its id.
func clusterFromTemplate(t *testing.T, c *client) {
	t.Helper()
	tpl := c.want(t, 201, "createTemplate", `{"name":"contract","image":"t:1","env":{"A":"t"}}`).text("id")
	c.tidy(t, "deleteTemplate", tpl)
	head := `{"name":"contract","type":"TRAINING","compute":{"gpuTypeId":"` + c.gpu + `","gpuCountPerPod":1,"podCount":2},"templateId":"` + tpl + `"`
	for _, setting := range []string{`"image":"i"`, `"args":""`, `"cmd":[]`, `"disk":20`, `"env":{}`, `"ports":[]`, `"mounts":{}`} {
		c.want(t, 400, "createCluster", head+`,`+setting+`}`)
	}
	made := c.want(t, 201, "createCluster", head+`}`)
	c.tidy(t, "deleteCluster", made.text("id"))
	members := c.want(t, 200, "listClusterPods", "", made.text("id"))
	if made.text("template") != tpl || members.text("pods.0.image") != "t:1" || members.text("pods.0.env.A") != "t" {
		t.Errorf("got %s with %s", made.body, members.body)
	}
	c.want(t, 204, "deleteCluster", "", made.text("id"))
}
