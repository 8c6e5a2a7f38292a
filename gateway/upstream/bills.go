package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Bills returns the hourly bills for all resources of an organisation in a time range. The arguments from and to must be whole hours.
func (c *Account) Bills(ctx context.Context, org string, from, to time.Time) ([]ledger.Bill, error) {
	query := "?" + url.Values{
		"bucketSize": {"hour"}, "startTime": {from.UTC().Format(time.RFC3339)}, "endTime": {to.UTC().Format(time.RFC3339)},
	}.Encode()
	var bills []ledger.Bill
	for _, route := range []struct {
		path, id string
		kind     operation.Kind
	}{
		{"/v2/billing/pods", "podId", operation.KindPod},
		{"/v2/billing/serverless", "serverlessId", operation.KindEndpoint},
		{"/v2/billing/network-volumes", "networkVolumeId", operation.KindVolume},
		{"/v2/billing/clusters", "clusterId", operation.KindCluster},
	} {
		doc, _, err := c.list(ctx, org, route.path+query, "records")
		if err != nil {
			return nil, err
		}
		object, _ := doc.(map[string]any)
		records, ok := object["records"].([]any)
		if !ok {
			return nil, fmt.Errorf("%w: GET %s returned no records", ErrUnreachable, route.path)
		}
		for _, item := range records {
			record, _ := item.(map[string]any)
			bill, ok := billOf(record, route.id)
			if !ok {
				return nil, fmt.Errorf("%w: GET %s returned a record that is not an hourly bill", ErrUnreachable, route.path)
			}
			if bill.Kind = route.kind; !bill.Hour.Before(from) && bill.Hour.Before(to) {
				bills = append(bills, bill)
			}
		}
	}
	return bills, nil
}

// billOf parses the bill of one whole hour.
func billOf(record map[string]any, id string) (bill ledger.Bill, ok bool) {
	text, _ := record["startTime"].(string)
	start, err := time.Parse(time.RFC3339, text)
	number, _ := record["totalAmount"].(json.Number)
	usd, err2 := number.Float64()
	bill.Resource, _ = record[id].(string)
	bill.Hour, bill.Micro = start.UTC(), int64(math.Round(usd*1e6))
	return bill, err == nil && err2 == nil && bill.Resource != "" && bill.Hour.Equal(ledger.Hourly.Start(start)) &&
		math.Abs(usd) < ledger.MaxBurn/1e6
}
