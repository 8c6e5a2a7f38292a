package graphql

import (
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/translate"
)

// cuda is a constraint on CUDA versions: a list or a floor, never both, because
// v2 takes only one of them.
type cuda struct {
	list  []string
	floor string
}

// mostCUDAVersions bounds a list of versions, which goes into the query of a
// catalog call; there are not half as many.
const mostCUDAVersions = 100

// cudaOf reads allowedCudaVersions, cudaVersion and minCudaVersion. Given both
// a list and a floor, the list's versions at or above the floor remain.
func cudaOf(a args) (cuda, error) {
	if len(a.list("allowedCudaVersions")) > mostCUDAVersions {
		return cuda{}, badInput("allowedCudaVersions: at most " + strconv.Itoa(mostCUDAVersions) + " versions")
	}
	c := cuda{list: translate.Unique(a.texts("allowedCudaVersions")), floor: a.text("minCudaVersion")}
	if one := a.text("cudaVersion"); one != "" {
		if len(c.list) > 0 && !slices.Contains(c.list, one) {
			return cuda{}, badInput("cudaVersion is not among allowedCudaVersions")
		}
		c.list = []string{one}
	}
	if len(c.list) > 0 && c.floor != "" {
		c.list = translate.AtLeastCUDA(c.list, c.floor)
		c.floor = ""
		if len(c.list) == 0 {
			return cuda{}, badInput("no allowed CUDA version is at or above minCudaVersion")
		}
	}
	return c, nil
}

// any reports that there is no constraint.
func (c cuda) any() bool { return len(c.list) == 0 && c.floor == "" }

// allows reports whether a host's version fits.
func (c cuda) allows(version string) bool {
	switch {
	case len(c.list) > 0:
		return slices.Contains(c.list, version)
	case c.floor != "":
		return len(translate.AtLeastCUDA([]string{version}, c.floor)) > 0
	}
	return true
}
