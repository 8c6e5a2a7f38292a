package legacy

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// CUDA is a constraint on the CUDA versions of hosts: a list or a floor, never
// both, because v2 takes only one of them.
type CUDA struct {
	// Versions is nil when none was given; an empty list means any version.
	Versions []string
	Floor    string
}

// maxCUDAVersions bounds a list of versions, which goes into the query of a
// catalog call; there are not half as many.
const maxCUDAVersions = 100

// CUDAOf checks a constraint. Of a list and a floor, the versions at or above the
// floor are left.
func CUDAOf(versions []string, floor string) (CUDA, error) {
	if len(versions) > maxCUDAVersions {
		return CUDA{}, invalid("allowedCudaVersions", "at most %d versions", maxCUDAVersions)
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
		floor += ".0" // callers write a bare major version too
	}
	if _, ok := translate.ParseCUDA(floor); !ok {
		return CUDA{}, invalid("minCudaVersion", "%.20q is not a version like 12.4", given)
	}
	if len(versions) == 0 {
		return CUDA{versions, floor}, nil
	}
	if versions = translate.AtLeastCUDA(versions, floor); len(versions) == 0 {
		return CUDA{}, invalid("allowedCudaVersions", "none is at least minCudaVersion %s", floor)
	}
	return CUDA{Versions: versions}, nil
}

// Allows reports whether a host of the version fits.
func (c CUDA) Allows(version string) bool {
	switch {
	case len(c.Versions) > 0:
		return slices.Contains(c.Versions, version)
	case c.Floor != "":
		return len(translate.AtLeastCUDA([]string{version}, c.Floor)) > 0
	}
	return true
}

// Any reports whether every version will do.
func (c CUDA) Any() bool { return len(c.Versions) == 0 && c.Floor == "" }
