package ui

import (
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
)

// accessPages returns the pages of the group Access.
func accessPages() []*page {
	return []*page{
		{name: "keys", title: "Keys", asks: keyRow, group: groupAccess, icon: "key", load: keys},
		{name: "audit", title: "Audit log", asks: auditLog, group: groupAccess, icon: "book", period: last7Days, load: changes},
	}
}

func keys(v *visit) (any, int, string) {
	list := ask[callers.List](v, keyRow, v.query(keyRow))
	return list.Is, list.Status, list.Fault
}

func changes(v *visit) (any, int, string) {
	list := ask[audit.Page](v, auditLog, v.since(v.query(auditLog)))
	return list.Is, list.Status, list.Fault
}
