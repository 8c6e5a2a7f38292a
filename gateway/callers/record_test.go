package callers_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Every configured field of a key is recorded: a setting missing from the record would be lost when
// the key is read back. moved_from is of the configuration alone: a key made at run time stays in its team.
func TestRecordsOfKeysLoseNothing(t *testing.T) {
	names := func(of reflect.Type, tag string) (list []string) {
		for f := range of.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "-" {
				list = append(list, name)
			}
		}
		return list
	}
	recorded := names(reflect.TypeFor[settings.KeyRecord](), "json")
	for _, name := range names(reflect.TypeFor[settings.Key](), "yaml") {
		if name != "sha256" && name != "moved_from" && !slices.Contains(recorded, name) { // sha256 is one of the digests
			t.Errorf("%s is not recorded", name)
		}
	}
}
