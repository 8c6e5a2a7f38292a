package legacy

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// CUDA is a constraint on the CUDA versions of hosts. It has a list or a minimum, but not both, because v2 does not accept both.
type CUDA struct {
	// Versions is nil if no list was given. An empty list allows any version.
	Versions []string
	Floor    string
}

// maxCUDAVersions limits a list of versions, which becomes part of a catalog query. It is more than twice the number of
// existing versions.
const maxCUDAVersions = 100

// CUDAOf validates a constraint. If both a list and a minimum are given, it keeps the versions in the list that are at least the minimum.
func CUDAOf(versions []string, floor string) (CUDA, error) {
	if len(versions) > maxCUDAVersions {
		return CUDA{}, invalid("allowedCudaVersions", "must have at most %d versions", maxCUDAVersions)
	}
	if versions != nil {
		versions = translate.Unique(versions)
	}
	for _, v := range versions {
		if _, ok := translate.ParseCUDA(v); !ok {
			return CUDA{}, invalid("allowedCudaVersions", "%.20q is not a version like 12.4", v)
		}
	}
	if floor == "" {
		return CUDA{Versions: versions}, nil
	}
	given := floor
	if !strings.Contains(floor, ".") {
		floor += ".0" // callers also write a bare major version
	}
	if _, ok := translate.ParseCUDA(floor); !ok {
		return CUDA{}, invalid("minCudaVersion", "%.20q is not a version like 12.4", given)
	}
	if len(versions) == 0 {
		return CUDA{versions, floor}, nil
	}
	if versions = translate.AtLeastCUDA(versions, floor); len(versions) == 0 {
		return CUDA{}, invalid("allowedCudaVersions", "no version is at least minCudaVersion %s", floor)
	}
	return CUDA{Versions: versions}, nil
}

// Allows reports whether a host with the given version meets the constraint.
func (c CUDA) Allows(version string) bool {
	switch {
	case len(c.Versions) > 0:
		return slices.Contains(c.Versions, version)
	case c.Floor != "":
		return len(translate.AtLeastCUDA([]string{version}, c.Floor)) > 0
	}
	return true
}

// Any reports whether the constraint allows every version.
func (c CUDA) Any() bool { return len(c.Versions) == 0 && c.Floor == "" }
