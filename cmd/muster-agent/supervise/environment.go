package supervise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Job has what is the same in all rounds.
type Job struct {
	// ID identifies the job's rounds.
	ID string
	// Endpoint is the address of the rendezvous.
	Endpoint string
	// Restarts is how many rounds the agent has run before.
	Restarts int
	// MaxRestarts is how often the command may fail.
	MaxRestarts int
}

// Environment returns the command's environment: that of the container with the variables of its part in the round. A
// few variables are only defaults and do not override the user's.
func Environment(own []string, job Job, part protocol.Round) []string {
	rank, size, port := strconv.Itoa(part.Rank), strconv.Itoa(part.Size), strconv.Itoa(part.MasterPort)
	least, most := strconv.Itoa(part.Min), strconv.Itoa(part.Max)
	set := [][2]string{
		{"RANK", rank}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", size}, {"LOCAL_WORLD_SIZE", "1"}, {"NODE_RANK", rank},
		{"GROUP_RANK", rank}, {"GROUP_WORLD_SIZE", size}, {"ROLE_RANK", rank}, {"ROLE_WORLD_SIZE", size},
		{"MASTER_ADDR", part.MasterAddress}, {"MASTER_PORT", port},
		// If the command is torchrun, these make it use a static rendezvous of its own for the round.
		{"PET_NNODES", size}, {"PET_NODE_RANK", rank}, {"PET_MASTER_ADDR", part.MasterAddress}, {"PET_MASTER_PORT", port},
		{"PET_RDZV_BACKEND", "static"}, {"PET_RDZV_ENDPOINT", part.Master()}, {"PET_RDZV_ID", job.ID},
		{"PET_MAX_RESTARTS", "0"}, {"TORCHELASTIC_RUN_ID", job.ID}, {"TORCHELASTIC_RESTART_COUNT",
			strconv.Itoa(job.Restarts)}, {"TORCHELASTIC_MAX_RESTARTS", strconv.Itoa(job.MaxRestarts)},
		{"MIN_NODES", least}, {"MAX_NODES", most}, {"LATTICE_NNODES", least + ":" + most},
		{"LATTICE_RUN_ID", job.ID}, {"LATTICE_ROUND", strconv.FormatInt(part.Number, 10)},
		{"RDZV_BACKEND", "muster"}, {"RDZV_ENDPOINT", job.Endpoint},
	}
	unlessSet := [][2]string{
		{"PET_NPROC_PER_NODE", "1"}, {"NUM_LOCAL_DEVICES", "1"}, {"RDZV_CONFIG", ""}, {"NCCL_ASYNC_ERROR_HANDLING", "1"},
		{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
	}
	var out []string
	for _, variable := range own {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.ContainsFunc(set, func(s [2]string) bool { return s[0] == name }) {
			out = append(out, variable)
			unlessSet = slices.DeleteFunc(unlessSet, func(s [2]string) bool { return s[0] == name })
		}
	}
	for _, s := range append(set, unlessSet...) {
		out = append(out, fmt.Sprintf("%s=%s", s[0], s[1]))
	}
	return out
}
