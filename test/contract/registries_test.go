package contract

import (
	"strings"
	"testing"
)

func registries(t *testing.T, c *client) {
	t.Helper()
	made := c.want(t, 201, "createRegistry", `{"name":"contract","username":"u","password":"never shown"}`)
	id := made.text("id")
	c.tidy(t, "deleteRegistry", id)
	if strings.Contains(string(made.body), "never shown") || strings.Contains(string(made.body), "username") {
		t.Errorf("the secret is write-only: %s", made.body)
	}
	if got := c.want(t, 200, "getRegistry", "", id).text("name"); got != "contract" {
		t.Errorf("read back: got %q", got)
	}
	if raw := string(c.want(t, 200, "listRegistries", "").body); !strings.Contains(raw, id) {
		t.Errorf("list: got %s", raw)
	}
	for _, body := range []string{`{}`, `{"name":"a","username":"b"}`, `{"name":"a","username":"b","password":""}`} {
		c.want(t, 422, "createRegistry", body)
	}
	tpl := c.want(t, 201, "createTemplate", `{"name":"contract","image":"i:1","registry":"`+id+`"}`).text("id")
	c.tidy(t, "deleteTemplate", tpl)
	pod := c.want(t, 201, "createPod", c.podBody(`"registry":"`+id+`"`)).text("id")
	c.tidy(t, "deletePod", pod)
	c.want(t, 400, "deleteRegistry", "", id)
	c.want(t, 204, "deletePod", "", pod)
	c.want(t, 204, "deleteRegistry", "", id)
	c.want(t, 404, "deleteRegistry", "", id)
	if got := c.want(t, 200, "getTemplate", "", tpl).at("registry"); got != nil {
		t.Errorf("the template's registry after it is gone: got %v, want null", got)
	}
	delegations(t, c)
}

func delegations(t *testing.T, c *client) {
	t.Helper()
	c.want(t, 200, "listDelegations", "")
	c.want(t, 422, "createDelegation", `{"name":"a"}`)
	c.want(t, 400, "createDelegation", `{"resource":"not an ARN"}`)
	c.needsEmulator(t) // elsewhere a repository would have to grant the platform access first
	d := c.want(t, 201, "createDelegation", `{"resource":"arn:aws:ecr:eu-west-1:123456789012:repository/app","name":"d"}`)
	if d.text("repository") != "app" || d.text("awsRegion") != "eu-west-1" || d.text("awsUser") != "123456789012" {
		t.Errorf("got %s", d.body)
	}
	c.want(t, 204, "revokeDelegation", "", d.text("id"))
	c.want(t, 404, "revokeDelegation", "", d.text("id"))
}
