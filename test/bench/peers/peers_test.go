//go:build peers

package peers

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/musterhq/muster/test/bench/figure"
)

var (
	source = flag.String("volcano", "", "folder with Volcano's source, of which its definitions and its configuration are used")
	built  = flag.String("binaries", "../../../bin/peers",
		"folder with Volcano's programs scheduler and controller-manager")
	config = flag.String("config", "", "the operator's configuration file; without one every option has its default")
	rounds = flag.Int("rounds", 3, "how often each load is played; the figure is the median")
	only   = flag.String("load", "", "the one load to play, by the number of its jobs; without it all are played")
	scale  = flag.Float64("scale", 1, "share of the jobs; the figures hold for 1 only")
)

const (
	nodes      = 200
	gpusOfNode = 8
	mostOfTime = 0.9
	patience   = 5 * time.Minute
)

// load is a number of jobs of equal size.
type load struct {
	name       string
	jobs, pods int
}

func loads() []load {
	scaled := func(n int) int { return max(1, int(float64(n)**scale)) }
	return []load{
		{"gangs of 4 pods", scaled(300), 4},
		{"single pods", scaled(1000), 1},
		{"gang of 512 pods", 1, scaled(512)},
	}
}

// TestPeers plays each load in turn with Muster and with Volcano, from the first creation of a VCJob to the last
// binding. The turns alternate, so that other work on the machine meets both.
func TestPeers(t *testing.T) {
	log.SetLogger(logr.Discard())
	muster, volcano := newMuster(t), newVolcano(t)
	for _, warm := range []*contender{muster, volcano} {
		warm.play(t, load{"warm", 20, 4})
	}
	for _, l := range loads() {
		if *only != "" && *only != fmt.Sprint(l.jobs) {
			continue
		}
		took, used := map[*contender][]time.Duration{}, map[*contender][]time.Duration{}
		for range *rounds {
			for _, c := range []*contender{muster, volcano} {
				wall, cpu := c.play(t, l)
				took[c], used[c] = append(took[c], wall), append(used[c], cpu)
				t.Logf("%d %s, %s: %s, CPU time %s", l.jobs, l.name, c.name, figure.Seconds(wall), figure.Seconds(cpu))
			}
		}
		of := func(c *contender) string {
			return fmt.Sprintf("%s, %s", figure.Seconds(median(took[c])), figure.Seconds(median(used[c])))
		}
		ratio := median(took[muster]).Seconds() / median(took[volcano]).Seconds()
		figure.Note(fmt.Sprintf("%d %s with Volcano until all are bound, CPU time", l.jobs, l.name), of(volcano))
		figure.Note("  with Muster", of(muster))
		figure.Reach(t, "  to Volcano's", fmt.Sprintf("%.2f", ratio), fmt.Sprint(mostOfTime), ratio <= mostOfTime)
	}
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
