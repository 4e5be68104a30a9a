"""Raft's election: a server that hears of no leader asks for votes in a new term, and most votes make it the leader.

After Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", without the log. Requests and
votes are never lost, and arrive in any order, more than once.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import (
    Bound,
    Map,
    all_between,
    applies,
    count_between,
    implies,
    replace,
    require,
)

Server = NewType("Server", int)
Term = NewType("Term", int)
SERVERS = 3
TERMS = 2
NONE = Server(-1)


class Role(IntEnum):
    """The roles of a server."""

    FOLLOWER = 0
    CANDIDATE = 1
    LEADER = 2


@dataclass(frozen=True, slots=True)
class State:
    """The servers, and the votes that were sent; a candidate's vote for itself asks for those of others."""

    servers: int = SERVERS  # which no step changes
    term: Map[Server, Term] = Map(Term(0))
    role: Map[Server, Role] = Map(Role.FOLLOWER)
    vote: Map[Server, Term, Server] = Map(Server(-1))  # -1 for none


def stand(s: State, server: Server) -> State:
    """A server hears of no leader: it becomes a candidate in the next term, and votes for itself."""
    applies(0 <= server < s.servers)
    require(
        s.role[server] != Role.LEADER,
        "server-is-no-leader",
        because="the server is no leader",
        otherwise="a leader leaves its followers",
    )
    return replace(
        s,
        term=s.term.set(server, Term(s.term[server] + 1)),
        role=s.role.set(server, Role.CANDIDATE),
        vote=s.vote.set(server, Term(s.term[server] + 1), server),
    )


def grant(s: State, server: Server, candidate: Server, term: Term) -> State:
    """A server votes for a candidate of a term."""
    applies(0 <= server < s.servers and 0 <= candidate < s.servers)
    require(
        s.vote[candidate, term] == candidate,
        "vote-was-asked-for",
        because="the candidate has asked for votes in the term",
        otherwise="a server is elected that knows nothing of it",
    )
    require(
        s.term[server] <= term,
        "term-is-not-over",
        because="the server knows of no later term",
        otherwise="it votes in a term that it has left",
    )
    require(
        s.vote[server, term] == NONE,
        "server-votes-once",
        because="the server has not voted in the term",
        otherwise="two candidates have most votes",
    )
    return replace(
        s,
        term=s.term.set(server, term),
        role=s.role.set(server, Role.FOLLOWER),
        vote=s.vote.set(server, term, candidate),
    )


def hear(s: State, server: Server, other: Server) -> State:
    """A server hears of a later term, and follows."""
    applies(0 <= server < s.servers and 0 <= other < s.servers)
    require(
        s.term[server] < s.term[other],
        "term-is-later",
        because="the other server's term is later",
        otherwise="a server returns to a term that is over",
    )
    return replace(s, term=s.term.set(server, s.term[other]), role=s.role.set(server, Role.FOLLOWER))


def votes(s: State, server: Server) -> int:
    """The number of votes for a server in its term."""
    return count_between(0, s.servers, lambda v: s.vote[Server(v), s.term[server]] == server)


def win(s: State, server: Server) -> State:
    """A candidate with most votes is the leader of its term."""
    applies(0 <= server < s.servers and s.role[server] == Role.CANDIDATE)
    require(
        s.servers < 2 * votes(s, server),
        "most-servers-vote-for-it",
        because="most servers vote for it",
        otherwise="there are two leaders in one term",
    )
    return replace(s, role=s.role.set(server, Role.LEADER))


def a_term_has_one_leader(s: State, a: Server, b: Server) -> bool:
    """Otherwise two logs grow in one term, and one of them is overwritten."""
    return implies(
        0 <= a < s.servers
        and 0 <= b < s.servers
        and s.role[a] == Role.LEADER
        and s.role[b] == Role.LEADER
        and s.term[a] == s.term[b],
        a == b,
    )


def a_leader_has_most_votes(s: State, a: Server) -> bool:
    """Otherwise another one is elected in its term."""
    return implies(0 <= a < s.servers and s.role[a] == Role.LEADER, s.servers < 2 * votes(s, a))


def a_server_votes_in_no_later_term(s: State, server: Server, term: Term) -> bool:
    """Otherwise it votes twice when it comes there."""
    return implies(0 <= server < s.servers and s.vote[server, term] != NONE, term <= s.term[server])


INITIAL = State()
ACTIONS = (stand, grant, hear, win)
INVARIANTS = (a_term_has_one_leader, a_leader_has_most_votes, a_server_votes_in_no_later_term)
BOUND = Bound(
    says=f"terms up to {TERMS}",
    within=lambda s: all_between(0, SERVERS, lambda n: s.term[Server(n)] <= TERMS),
    numbers={
        "server": range(SERVERS),
        "candidate": range(SERVERS),
        "other": range(SERVERS),
        "term": range(TERMS + 1),
        "a": range(SERVERS),
        "b": range(SERVERS),
    },
)
