package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func templates(t *testing.T, c *client) {
	t.Helper()
	made := c.want(t, 201, "createTemplate", `{"name":"contract","image":"i:1","env":{"A":"1"},"mounts":{"persistent":{"size":10,"path":"/w"}}}`)
	id := made.text("id")
	c.tidy(t, "deleteTemplate", id)
	got := map[string]any{}
	for _, name := range []string{"startSsh", "startJupyter", "serverless", "public", "category", "allowedCudaVersions", "registry"} {
		got[name] = made.at(name)
	}
	want := map[string]any{
		"startSsh": true, "startJupyter": true, "serverless": false, "public": false, "category": "NVIDIA",
		"allowedCudaVersions": []any{}, "registry": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for _, body := range []string{
		`{"name":"a"}`, `{"image":"i"}`, `{"name":"a","image":"i","mounts":{"network":[]}}`, `{"name":"a","image":"i","allowedCudaVersions":["12"]}`,
	} {
		c.want(t, 422, "createTemplate", body)
	}
	c.want(t, 200, "updateTemplate", `{}`, id)
	changed := c.want(t, 200, "updateTemplate", `{"env":{"B":"2"},"startSsh":false,"mounts":{}}`, id)
	if diff := cmp.Diff(map[string]any{"B": "2"}, changed.at("env")); diff != "" {
		t.Errorf("env is replaced as a whole (-want +got):\n%s", diff)
	}
	if changed.number("mounts.persistent.size") != 10 || changed.at("startSsh") != false || changed.at("startJupyter") != true {
		t.Errorf("what is left out stays: got %s", changed.body)
	}
	c.want(t, 422, "updateTemplate", `{"name":""}`, id)
	c.want(t, 404, "updateTemplate", `{}`, "nope")
	if raw := string(c.want(t, 200, "listTemplates", "").body); !strings.Contains(raw, id) {
		t.Errorf("list: got %.300s", raw)
	}
	public := c.want(t, 200, "listPublicTemplates", "").text("templates.0.id")
	c.want(t, 200, "getTemplate", "", public)
	c.want(t, 404, "updateTemplate", `{}`, public)
	c.want(t, 404, "deleteTemplate", "", public)
	c.want(t, 204, "deleteTemplate", "", id)
	c.want(t, 404, "getTemplate", "", id)
}
