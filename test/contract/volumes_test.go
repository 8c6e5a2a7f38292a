package contract

import (
	"strings"
	"testing"
)

func networkVolumes(t *testing.T, c *client) {
	t.Helper()
	dc := c.want(t, 200, "listDataCenters", "", "?networkVolumeTypes=STANDARD").text("dataCenters.0.id")
	v := c.want(t, 201, "createNetworkVolume", `{"name":"contract","size":10,"dataCenter":"`+dc+`"}`)
	id := v.text("id")
	c.tidy(t, "deleteNetworkVolume", id)
	if v.number("size") != 10 || v.text("dataCenter") != dc {
		t.Errorf("got %s", v.body)
	}
	for _, body := range []string{
		`{"name":"a","size":9,"dataCenter":"` + dc + `"}`, `{"name":"a","size":4097,"dataCenter":"` + dc + `"}`, `{"name":"a","size":10}`,
	} {
		c.want(t, 422, "createNetworkVolume", body)
	}
	c.want(t, 400, "createNetworkVolume", `{"name":"a","size":10,"dataCenter":"nowhere"}`)
	for body, status := range map[string]int{`{}`: 422, `{"type":"STANDARD"}`: 422, `{"dataCenter":"x"}`: 422, `{"size":9}`: 422} {
		c.want(t, status, "updateNetworkVolume", body, id)
	}
	if got := c.want(t, 200, "updateNetworkVolume", `{"size":20,"name":"grown"}`, id); got.number("size") != 20 || got.text("name") != "grown" {
		t.Errorf("got %s", got.body)
	}
	c.want(t, 400, "updateNetworkVolume", `{"size":19}`, id)
	c.want(t, 404, "updateNetworkVolume", `{"size":20}`, "nope")
	c.want(t, 200, "getNetworkVolume", "", id)
	if raw := string(c.want(t, 200, "listNetworkVolumes", "").body); !strings.Contains(raw, id) {
		t.Errorf("list: got %.300s", raw)
	}
	c.want(t, 204, "deleteNetworkVolume", "", id)
	c.want(t, 404, "deleteNetworkVolume", "", id)
}
