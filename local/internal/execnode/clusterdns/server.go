package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// answerTTLSeconds is the TTL of answers, which is short because pods come and go.
const answerTTLSeconds = 1

// maxNameWait bounds the wait for the address of a starting pod. Resolvers retry after five seconds.
const maxNameWait = 3 * time.Second

// upstreamTimeout bounds a query to one of the machine's DNS servers.
const upstreamTimeout = 2 * time.Second

// Server answers over UDP and TCP on port 53 of one address.
type Server struct {
	zone Zone
	udp  *dns.Server
	tcp  *dns.Server
}

// Serve starts a server. Close ends it.
func Serve(at netip.Addr, zone Zone) (*Server, error) {
	s := &Server{zone: zone}
	address := netip.AddrPortFrom(at, 53).String()
	packets, err := net.ListenPacket("udp4", address)
	if err != nil {
		return nil, fmt.Errorf("listening for names on %s: %w", address, err)
	}
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		packets.Close()
		return nil, fmt.Errorf("listening for names on %s: %w", address, err)
	}
	s.udp = &dns.Server{PacketConn: packets, Handler: s}
	s.tcp = &dns.Server{Listener: listener, Handler: s}
	for _, server := range []*dns.Server{s.udp, s.tcp} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go server.ActivateAndServe()
		<-started
	}
	return s, nil
}

// Close stops answering.
func (s *Server) Close() error {
	return errors.Join(s.udp.Shutdown(), s.tcp.Shutdown())
}

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	reply := new(dns.Msg)
	reply.SetReply(request)
	reply.RecursionAvailable = true
	switch {
	case len(request.Question) != 1:
		reply.Rcode = dns.RcodeFormatError
	case s.zone.Holds(plain(request.Question[0].Name)):
		reply.Authoritative = true
		s.answer(request.Question[0], reply)
	default:
		if answer := forward(request); answer != nil {
			reply = answer
		} else {
			reply.Rcode = dns.RcodeServerFailure
		}
	}
	w.WriteMsg(reply)
}

func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func (s *Server) answer(question dns.Question, reply *dns.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), maxNameWait)
	defer cancel()
	answer := s.zone.Await(ctx, plain(question.Name))
	if !answer.Exists {
		reply.Rcode = dns.RcodeNameError
		return
	}
	header := dns.RR_Header{Name: question.Name, Class: dns.ClassINET, Ttl: answerTTLSeconds}
	if answer.Alias != "" {
		header.Rrtype = dns.TypeCNAME
		reply.Answer = append(reply.Answer, &dns.CNAME{Hdr: header, Target: answer.Alias + "."})
		return
	}
	if question.Qtype != dns.TypeA && question.Qtype != dns.TypeANY {
		return
	}
	header.Rrtype = dns.TypeA
	for _, address := range answer.Addresses {
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: address.AsSlice()})
	}
	// Clients use the first address: shuffle to balance over a service's pods.
	rand.Shuffle(len(reply.Answer), func(i, j int) { reply.Answer[i], reply.Answer[j] = reply.Answer[j], reply.Answer[i] })
}

// forward queries the machine's DNS servers in their order, and returns nil if none answers.
func forward(request *dns.Msg) *dns.Msg {
	config, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	client := &dns.Client{Timeout: upstreamTimeout}
	for _, server := range config.Servers {
		ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
		answer, _, err := client.ExchangeContext(ctx, request, net.JoinHostPort(server, config.Port))
		cancel()
		if err == nil {
			return answer
		}
	}
	return nil
}
