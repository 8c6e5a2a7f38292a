package contract

import (
	"math"
	"net/http"
	"testing"
)

func billing(t *testing.T, c *client) {
	t.Helper()
	for _, op := range []string{
		"listBilling", "listPodBilling", "listServerlessBilling", "listEndpointBilling", "listNetworkVolumeBilling", "listClusterBilling",
	} {
		for _, query := range []string{"?bucketSize=hour&lastN=2", "?bucketSize=week", "?lastN=1", "?bucketSize=year&lastN=1"} {
			a := c.want(t, http.StatusOK, op, "", query)
			if n := len(a.list("records")); float64(n) != a.number("metadata.recordCount") {
				t.Errorf("%s%s: %d records, recordCount %v", op, query, n, a.at("metadata.recordCount"))
			}
			sum := 0.0
			for _, v := range a.list("records") {
				total, parts := 0.0, 0.0
				m, _ := v.(map[string]any)
				for name, amount := range m {
					f, isNumber := amount.(float64)
					switch {
					case name == "totalAmount":
						total = f
					case isNumber:
						parts += f
					}
				}
				if op != "listEndpointBilling" && math.Abs(total-parts) > 1e-6 {
					t.Errorf("%s: totalAmount %v of parts that are %v", op, total, parts)
				}
				sum += total
			}
			if got := a.number("metadata.totals.totalAmount"); math.Abs(got-sum) > 1e-4 {
				t.Errorf("%s%s: totals say %v, records %v", op, query, got, sum)
			}
		}
	}
	spent := c.want(t, http.StatusOK, "listBilling", "", "?bucketSize=year&lastN=1")
	if c.emulator != nil && spent.number("records.0.totalAmount") <= 0 {
		t.Errorf("everything that ran cost nothing: %s", spent.body)
	}
}

// money is what happens to an account that has none.
func money(t *testing.T, c *client) {
	t.Helper()
	c.needsEmulator(t)
	poor := c.with(poorKey)
	dc := c.want(t, 200, "listDataCenters", "", "?networkVolumeTypes=STANDARD").text("dataCenters.0.id")
	endpoint := poor.want(t, 201, "createEndpoint", queueBody).text("id")
	volume := poor.want(t, 201, "createNetworkVolume", `{"name":"v","size":10,"dataCenter":"`+dc+`"}`).text("id")
	if err := c.emulator.SetBalance("poor", 1000); err != nil {
		t.Fatal(err)
	}
	pod := poor.want(t, 201, "createPod", c.podBody()).text("id")
	poor.want(t, 200, "podAction", `{"action":"stop"}`, pod)
	if err := c.emulator.SetBalance("poor", 0); err != nil {
		t.Fatal(err)
	}
	poor.want(t, 402, "createPod", c.podBody())
	poor.want(t, 402, "podAction", `{"action":"start"}`, pod)
	poor.want(t, 402, "createCluster", `{"name":"c","type":"RAY","compute":{"gpuTypeId":"`+c.gpu+`","gpuCountPerPod":1,"podCount":2}}`)
	poor.want(t, 402, "createEndpoint", queueBody)
	poor.want(t, 402, "createSandbox", sandboxBody)
	poor.want(t, 402, "updateEndpoint", `{"workers":{"max":2}}`, endpoint)
	poor.want(t, 402, "createNetworkVolume", `{"name":"v","size":10,"dataCenter":"`+dc+`"}`)
	poor.want(t, 402, "updateNetworkVolume", `{"size":20}`, volume)
}
