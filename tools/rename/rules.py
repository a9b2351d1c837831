"""What becomes of which word, where. rename.py applies it; GLOSSARY.md says why."""

# Paths that are never touched: results, and texts that quote what others wrote.
SKIP = [r"^bench/results/", r"^LICENSE$", r"^\.venv", r"check_prose\.py$", r"^docs/.*\.(png|svg)$"]

# --- files: stem -> stem, the first scope that fits ------------------------------------------
FILES = [
    (r"tests/net/", {"letters": "direct_out_of_band"}),
    (r"rma/.*proxy/", {"rest": "quiesce", "parcel": "message", "parcels": "messages"}),
    (r"rma/.*runs/", {"settle": "finish"}),
    (r"^src/world/mpi/", {"letters": "text_channel"}),
    (r"(^|/)(src|tests|include/meshpost)/.*rma/|^include/meshpost/rma/", {
        "letters": "commands",
        "mailbox": "command_queue",
        "post": "proxy_request",
        "parcel": "proxy_message",
        "parcels": "messages",
        "proxy_parcels": "proxy_messages",
        "bare_count": "packed_signal",
        "council": "termination",
        "glance": "fast_poll",
        "leftovers": "unconsumed",
        "evidence": "failed_run_state",
        "places": "global_addresses",
        "proxy_rest": "proxy_quiesce",
        "run_settle": "run_finish",
    }),
    (r"copy/job/|tests/copy/", {
        "desk": "copy_server",
        "courier": "progress_thread",
        "gate": "access_epochs",
        "part": "part_info",
        "lane": "copy_stream",
    }),
    (r"src/copy/", {"lane": "copy_stream"}),
    (r"src/pipeline/", {"lane": "leg_executor"}),
    (r"device/cpu/|device/cuda/|tests/device/", {"crew": "launch_resources", "gang": "cooperative_launch"}),
    (r"world/", {"door": "acceptor", "strangers": "unauthenticated_peers", "peers": "process_group"}),
    (r"net/ofi/", {"leftover": "stale_files"}),
    (r"base/", {"patience": "deadline", "host_places": "host_hooks"}),
]

# parts of a file's name, where no rule above fits
FILE_WORDS = {
    "desk": "copy_server", "courier": "progress_thread", "council": "termination", "mailbox": "command_queue",
    "letters": "commands", "parcel": "message", "parcels": "messages", "leftovers": "unconsumed",
    "gang": "cooperative_launch", "crew": "launch_resources", "door": "acceptor",
    "strangers": "unauthenticated_peers", "patience": "deadline", "evidence": "failed_run_state",
    "glance": "fast_poll", "posts": "requests",
}

# --- names that stay, by path ----------------------------------------------------------------
KEEP = [
    (r"src/copy/search", "settled"),       # Dijkstra's own word
    (r"tests/net/", "settled"),
    (r"^(?!src/|include/|tests/(world|rma|net/ofi)/|bench/rma)", "peers peers_ Peers"),
    (r"rma/.*staging", "peers_"),          # by process, what staging has with each
]

RMA = r"rma/"
PROXY = r"rma/(.*proxy|.*staging|.*undelivered|.*parcel|.*proxy_message|.*remote_heap|.*access|.*mailbox|.*command_queue)"
COPYJOB = r"copy/job/|tests/copy/"
# where `peers` is the World's group of processes, not a list of an engine's peers
GROUP = (r"src/rma/|src/world/|src/pipeline/|src/compat/|src/copy/job/(?!desk|copy_server)"
         r"|tests/rma/cpu_only/(council|termination)|tests/world/|bench/rma/engines")

# --- regular expressions on the text of a file, before names: (path, needs, pattern, new) ----
PATCHES = [
    # Kind: the enums within a request, a message or a frame become Type; Kind is the error's.
    (r"", None, r"\b(Post|Parcel|ProxyRequest|ProxyMessage|Message)::Kind\b", r"\1::Type"),
    (r"rma/.*post\.hpp|rma/.*proxy_request\.hpp|rma/.*parcel\.hpp|rma/.*proxy_message\.hpp|copy/job/message\.hpp",
     None, r"\benum class Kind\b", r"enum class Type"),
    (r"rma/.*post\.hpp|rma/.*proxy_request\.hpp|rma/.*parcel\.hpp|rma/.*proxy_message\.hpp|copy/job/message\.hpp|copy/job/(desk|copy_server)\.hpp",
     None, r"\b((?:Message::)?)(?:Kind|Type) kind\b( = (?:Message::)?)(?:Kind|Type)\b", r"\1Type type\2Type"),
    (r"rma/|copy/job/|tests/copy/", r"\b(Post|Parcel|ProxyRequest|ProxyMessage|Message)::(Kind|Type)\b|enum class Type",
     r"(?<=[\w\])])\.kind\b(?!\()", r".type"),
    (r"rma/|copy/job/|tests/copy/", r"\b(Post|Parcel|ProxyRequest|ProxyMessage|Message)::(Kind|Type)\b|enum class Type",
     r"(?<=[{ ,(])\.kind = ", r".type = "),
    (r"rma/.*(proxy/|parcel|message|post\.|proxy_request)|copy/job/message", r"enum class Type|\bProxyMessage::|\bParcel::|\bPost::",
     r"(?<![\w.:>])kind(?= [=!<>]=? (?:Kind|Type)::(?!bad_|peer_lost|dead|kernel))", r"type"),
    (r"rma/.*(proxy/|parcel|message|post\.|proxy_request)|copy/job/message", r"enum class Type|\bProxyMessage::|\bParcel::|\bPost::",
     r"(?<![\w:])Kind::(?=(?:put|add|store|get|answer|news|count|done|bytes|refusal)\b)", r"Type::"),
    # a channel's message beside a proxy's
    (r"rma/", r"\b[Pp]arcel\b", r"\b(net::Channel::Message const& )message\b", r"\1received"),
    (r"rma/.*\.cpp$", r"\bparcel\b", r"(?<![:.\w])message(?=\.(?:header|bytes|written|keep)\b)", r"received"),
    (r"rma/.*\.cpp$", r"\bparcel\b", r"\bread_parcel\(message\)", r"read_parcel(received)"),
    # processes' messages: Processes::Post
    (r"", None, r"\bProcesses::Post\b", r"Processes::Message"),
    (r"world/processes", None, r"\bPost\b(?!::)", r"Message"),
    (r"world/", None, r"\bType::post\b", r"Type::message"),
    (r"world/wire\.hpp", None, r"^  post,      ///<", r"  message,   ///<"),
    (r"council|termination|copy/job/hang|pipeline/relay|world/", r"\btake_posts\b|\bPost\b|Processes::Message|\bposts\b",
     r"\bposts\b(?!\s*\()", r"messages"),
    (r"council|termination", r"\bCouncil::take_posts\b", r"\bpost(?=\.(?:bytes|from)\b)|\bpost(?= : messages| : peers_)|(?<=move\()post\b", r"received"),
    (r"world/(processes|troubled)|copy/job/hang|pipeline/relay", None,
     r"(?<![\w.>:])post(?=\.(?:bytes|from)\b)|\bpost(?= : )|(?<=take\()post\b|(?<=const& )post\b", r"message"),
    # the proxy's requests
    (r"rma/", r"\bPostRecord\b", r"\bPost post\b", r"Post request"),
    (r"rma/.*\.(cpp|hpp)$", r"\b(PostRecord|Post)\b", r"(?<=record\.)post\b", r"request"),
    (r"rma/.*requests\.cpp", r"\bPost\b", r"\bauto const post =", r"auto const request ="),
    (r"rma/.*requests\.cpp", r"\bPost\b", r"(?<![\w.>:])post(?=\.)|(?<=& )post\b(?!\()", r"request"),
    # signals: what a record or a command says in its first 16 bytes
    (r"rma/", r"\bBareCount\b|PackedSignal|\.alone\.(ready|place)|\balone\.place\b", r"\bBareCount alone\b", r"BareCount signal"),
    (r"rma/.*\.(hpp|cpp)$", None, r"\b(letter|record|next|command)\.alone\b", r"\1.signal"),
    (r"rma/.*requests\.cpp", r"record\.signal", r"\bauto const& alone\b", r"auto const& signal"),
    (r"rma/.*requests\.cpp", r"record\.signal", r"\balone(?=\.(?:place|number|counter|sender_word)\b)", r"signal"),
    (r"rma/", r"\bBareCount\b", r"\bBareCount const alone\{", r"BareCount const signal{"),
    (r"rma/", r"\bBareCount\b", r"(?<=record\.signal, )alone\)", r"signal)"),
    (r"rma/cpu_only/(bare_count|packed_signal)", r"\bBareCount\b", r"\balone(?=\.)", r"signal"),
    (r"rma/", r"\bBareCount\b|\bPackedSignal\b|\bsignal\.place\b", r"\bBareCount::place_of\b", r"BareCount::pack_address"),
    (r"rma/.*(bare_count|packed_signal)", None, r"\bplace_of\b", r"pack_address"),
    (r"rma/.*(bare_count|packed_signal)", None, r"(?<![\w])place\b(?! of)", r"address"),
    (r"rma/", None, r"\b(head|count|signal|in_ring|alone)\.place\b", r"\1.address"),
    # the termination detector
    (r"council|termination|rma/.*watch", None, r"\bcouncil(_?)(\.|->)sit\(", r"council\1\2poll("),
    (r"council|termination", None, r"\bsit(?=\(Own)", r"poll"),
    (r"council|termination", None, r"\bchair\(\)", r"is_root()"),
    # copies' requests
    (r"copy/job/(desk|copy_server)\.cpp", r"\bWish\b|\bwish\b", r"\bwish\.wish\b", r"copying.request"),
    (r"copy/job/(desk|copy_server)\.cpp", r"\bwish(es)?\b", r"for \(auto& wish : wishes\) wish\.state", r"for (auto& copying : wishes) copying.state"),
    (r"copy/job/(desk|copy_server)\.cpp", r"\bwish(es)?\b", r"for \(auto& wish : wishes\) \{", r"for (auto& copying : wishes) {"),
    (r"copy/job/(desk|copy_server)\.cpp", r"\bwish\b", r"\bwish\.state\b", r"copying.state"),
    (r"copy/job/(desk|copy_server)\.cpp", r"\bwish\b", r"std::move\(wish\)", r"std::move(copying)"),
    (r"rma/.*far_memory", None, r"\benum class Wish\b", r"enum class Action"),
    (r"rma/.*far_memory", None, r"\bWish\b", r"Action"),
    (r"rma/.*far_memory", None, r"\bwish\b", r"action"),
    # sockets between processes of a node
    (r"world/node\.cpp", None, r"\bDoor const& door\b", r"SocketName const& name"),
    (r"world/node\.cpp", None, r"\bdoor\.(boot|host|node|name)\b", r"name.\1"),
    (r"world/node\.cpp", None, r"\bDoor door;", r"SocketName name;"),
    (r"world/node\.cpp", r"SocketName name;|\bDoor\b", r"\breturn door;", r"return name;"),
    (r"world/node\.cpp", None, r"\bDoor\b", r"SocketName"),
    (r"world/node\.cpp", None, r"\bunpack_door\b", r"unpack_name"),
    (r"world/node", None, r"\bdoors\b(?!\.)", r"names"),
    (r"world/node", None, r"\bDescriptor( const&)? door\b", r"Descriptor\1 listener"),
    (r"world/node\.cpp", None, r"\bdoor(?=\.get\(\)| = Descriptor| \|\||, coming)", r"listener"),
    # addresses of the World
    (r"rma/.*windows?\b", None, r"\bu64 const place = record\.info\.offset", r"u64 const begin = record.info.offset"),
    (r"rma/.*windows?\b", r"u64 const begin = record\.info\.offset", r"layout_\.device_of\(rank\), place\}", r"layout_.device_of(rank), begin}"),
    (r"src/rma/", r"\bPlaces\b", r"\b(Places const& |Places& |places_\()places\b", r"\1addresses"),
    (r"src/rma/", r"\bPlaces\b", r"(?<![.\w])places(?=\(of_world\)|\.(?:take|give)_numbers)", r"addresses"),
    # the layout's `apart`: some process is out of reach of another; WorldOptions::apart stays
    (r"", None, r"\b(layout_?)\.apart\b", r"\1.far_processes"),
    (r"world/layout\.hpp", None, r"\bbool apart = false;", r"bool far_processes = false;"),
    # rest
    (r"rma/.*proxy|rma/.*life", None, r"(?<![.>\w])rest\((?=std::chrono|away|nap)", r"sleep("),
    (r"rma/.*proxy|rma/.*life", None, r"\bProxy::rest\b", r"Proxy::sleep"),
    # settle, in a device's poll: what was found goes into the counter
    (r"device/|rma/", None, r"\bpoll\.settle\(\)", r"poll.commit()"),
    (r"rma/", None, r"__device__ void settle\(\)", r"__device__ void commit()"),
    # settle: the agreement is valid, or reset; a run is finished; a proxy is drained
    (r"rma/", None, r"\b(agreement(?:_|\(\))?)\.unsettle\(", r"\1.invalidate("),
    (r"rma/", None, r"\b(agreement(?:_|\(\))?)\.settled\(", r"\1.valid("),
    (r"rma/", None, r"\b(agreement(?:_|\(\))?)\.settle\(", r"\1.reset("),
    (r"rma/.*agreement", None, r"\bunsettle\(", r"invalidate("),
    (r"rma/.*agreement", None, r"\bsettled\(", r"valid("),
    (r"rma/.*agreement", None, r"\bsettle\(", r"reset("),
    (r"rma/.*agreement", None, r"\bunsettled_", r"invalid_"),
    (r"rma/", None, r"(?<!\.)\bsettle\((?=Ending|ending|\) has not)", r"finish("),
    (r"rma/", None, r"(?<!poll\.)\bsettle\(", r"drain("),
    # a test's own patience
    (r"rma/.*proxy\.cpp|rma/.*host_windows", None, r"\bPatience patience\b", r"Patience timeout"),
    # gemm
    (r"apps/gemm/executor", None, r"\bLane\b", r"DeviceQueues"),
    (r"apps/gemm/executor", None, r"\blanes_\b", r"queues_"),
    (r"apps/gemm/executor", None, r"\blane\b", r"queues"),
    (r"apps/gemm/tests/plan", None, r"\bLane\b", r"FetchQueue"),
    (r"apps/gemm/tests/plan", None, r"\blane\b", r"queue"),
    # bench: how far two ranks are
    (r"bench/rma/processes\.cpp", None, r"\bApart\b", r"Distance"),
    (r"bench/rma/processes\.cpp", None, r"\bapart\b(?! from)", r"distance"),
    (r"tests/copy/", None, r"\bcopying::lane\(", r"copying::copy_stream("),
    # names in text
    (r"rma/|device/", r"\b[cC]rew\b", r"\bcrew\(", r"launch_resources("),
    (r"tests/", None, r"\"leftovers\"", r'"unconsumed"'),
    (r"test_kernel_cost", None, r"_ZNK8meshpost7Mailbox4pollEv", r"_ZNK8meshpost12CommandQueue4pollEv"),
    (r"^tests/", None, r"(?<=[\"'])letters(?=[\"'])", r"inbox"),  # a window's name
    (r"tests/rma/cpu_only/(mailbox|command_queue)", None, r"\bopened by a rank\b", r"carried out by a rank"),
    (r"tests/rma/cpu_only/(mailbox|command_queue)", None, r"\bopened\b(?=[,:) ])(?! by| is| later)", r"by_rank"),
    (r"copy/job/(gate|access_epochs)", None, r"meshpost-gate", r"meshpost-access-epochs"),
    (r"tests/rma/cpu_only/watch", None, r"/\*patience\*/", r"/*timeout*/"),
    # a failed run's fault texts
    (r"rma/.*failure\.cpp", r"\bStory\b", r"\bstory_of\b", r"fault_text_of"),
    (r"tests/rma/cpu_only/delivery", None, r"\bStory\b", r"Scenario"),
    (r"tests/rma/cpu_only/delivery", None, r"\bstory\b", r"scenario"),
    (r"tests/rma/cpu_only/delivery", None, r"\bStories\b", r"Scenarios"),
    (r"tests/mpi/CMakeLists", None, r"\bmemory leftovers\)", r"memory unconsumed)"),
]

# --- whole identifiers: (path, {old: new}), the first that fits wins --------------------------
NAMES = [
    (r"\.md$", {"Gate": "AccessEpochs", "Desk": "CopyServer", "Courier": "ProgressThread", "Wish": "CopyRequest",
                "Door": "Acceptor", "Stranger": "UnauthenticatedPeer", "Evidence": "FailedRunState",
                "Peers": "ProcessGroup", "Lane": "CopyStream"}),
    # host to device: commands
    (r"tests/(net|copy)/", {"Letters": "DirectOutOfBand", "letters": "out_of_band"}),
    (r"apps/gemm/options", {"letter": "character"}),
    (r"compat/dcuda_options", {"letter": "short_name"}),
    (r"world/mpi/", {"Letters": "TextChannel", "Letter": "Text", "letter": "received", "letters": "channel",
                     "letters_": "channel_"}),
    (r"device/cuda/clock", {"Mailbox": "ClockExchange", "mailbox": "exchange"}),
    (None, {
        "Letter": "Command", "letter": "command", "letters": "commands", "letters_": "commands_",
        "Mailbox": "CommandQueue", "MailboxAccess": "CommandQueueAccess", "MailboxTest": "CommandQueueTest",
        "mailbox": "command_queue", "mailboxes": "command_queues", "mail": "command_queue",
        "unopened": "has_pending_commands", "forget_opened": "forget_done", "closed_under": "pending_under",
        "runs_with_letters_": "runs_with_commands_",
        "what_is_kept_is_let_go_though_no_rank_opens_letters":
            "what_is_kept_is_let_go_though_no_rank_carries_out_commands",
        "what_no_rank_has_opened_is_carried_out_at_the_end":
            "what_no_rank_has_carried_out_the_host_does_at_the_end",
    }),
    (r"rma/.*(mailbox|command_queue)\.", {"Closed": "Pending", "closed_": "pending_"}),
    # requests and messages of the proxy
    (r"^(?!src/world|tests/world)", {
        "Post": "ProxyRequest", "PostRecord": "RequestRecord", "PostRing": "RequestRing",
    }),
    (r"rma/|docs/api", {"posts": "requests"}),
    (None, {
        "Parcel": "ProxyMessage", "parcel": "message", "parcels": "messages", "parcels_": "messages_",
        "read_parcel": "read_message", "refuse_parcel": "refuse_message", "send_parcel": "send_message",
        "await_parcels": "await_messages", "largest_parcel": "largest_message",
        "BareCount": "PackedSignal", "is_bare": "is_signal_only", "bare_count": "packed_signal",
        "take_posts": "take_messages", "wait_for_posts": "wait_for_messages", "posts_": "messages_",
        "take_wishes": "take_requests",
    }),
    (r"rma/.*(evidence|failed_run_state)|rma/.*diagnosis", {"Parcels": "MessageCounts"}),
    (r"tests/rma/", {"Parcels": "ProxyMessages"}),
    # processes together
    (None, {
        "Council": "TerminationDetector", "CouncilCpuOnly": "TerminationDetectorCpuOnly",
        "council": "detector", "council_": "detector_",
    }),
    (GROUP, {"Peers": "ProcessGroup", "peers": "group", "peers_": "group_"}),
    (r"tests/net/ofi/lost|net/ofi/memory|copy/job/", {"Peers": "ProcessGroup"}),
    (r"src/world/reach|src/world/node|src/world/(peers|process_group)|tests/world/reach",
     {"Parted": "SeparatePair", "parted": "separate"}),
    # launches
    (None, {
        "Gang": "CooperativeLaunch", "GangSpec": "LaunchSpec", "GangGraph": "LaunchGraph",
        "CpuGang": "CpuLaunch", "CudaGang": "CudaLaunch", "BoxedGang": "BoxedLaunch",
        "RunningGang": "RunningGrids", "gangs_": "launches_", "gang": "launch", "gangs": "launches",
        "Crew": "LaunchResources", "CpuCrew": "CpuLaunchResources", "CudaCrew": "CudaLaunchResources",
        "CrewCpuOnly": "LaunchResourcesCpuOnly", "crew_of": "resources_of", "own_crew_": "own_resources_",
    }),
    (r"rma/.*(watch|deadlock|reports)", {"crew": "running", "crews": "all_running", "crews_": "running_",
                                         "Crews": "AllRunning"}),
    (r"rma/(?!.*(watch|deadlock|reports))", {"crews_": "launch_resources_"}),
    (None, {"crew": "resources", "crew_": "resources_", "crews": "resources", "crews_": "resources_"}),
    # copies between processes
    (COPYJOB, {
        "Wish": "CopyRequest", "wish": "request", "wishes": "requests", "wishes_": "requests_",
        "Desk": "CopyServer", "desk": "server", "desks": "servers", "desks_": "servers_",
        "CopyDesk": "CopyServer", "Courier": "ProgressThread", "courier": "progress_thread",
        "Gate": "AccessEpochs", "Entry": "AccessEpoch", "gate": "epochs", "gate_": "epochs_", "entry": "epoch",
        "Part": "PartInfo", "longest_rest": "longest_sleep", "short_rest": "short_sleep", "rests": "idle_rounds",
    }),
    (r"rma/", {"wish": "description"}),
    (r"tests/rma/jobs/parted", {"by_wish_says_nothing": "by_request_says_nothing"}),
    (r"tests/world/reach", {"is_not_tried_between_nodes_and_nodes_by_wish_are_not_warned_of":
                            "is_not_tried_between_nodes_and_requested_nodes_are_not_warned_of"}),
    # who joins a job
    (r"world/|tests/support/troubles", {
        "Door": "Acceptor", "door": "acceptor", "doors_": "acceptors_", "doors": "acceptors",
        "Stranger": "UnauthenticatedPeer", "stranger": "peer", "strangers_": "unauthenticated_",
        "strangers": "unauthenticated", "most_strangers": "most_unauthenticated",
        "may_be_strangers": "may_be_unauthenticated", "Strangers": "UnauthenticatedPeers",
        "TlsStrangers": "TlsUnauthenticatedPeers",
        "have_little_memory_for_a_stranger_whatever_it_claims":
            "have_little_memory_for_an_unauthenticated_peer_whatever_it_claims",
    }),
    (r"tests/rma/jobs/failures", {"stranger": "foreign"}),
    (r"tests/rma/jobs/files", {"Strangers": "UnauthenticatedPeers", "strangers": "unauthenticated",
                               "that_strangers_take_are_taken_back_from_them":
                                   "that_unauthenticated_peers_take_are_taken_back_from_them"}),
    # polls, notifications
    (None, {"glance": "poll_fast"}),
    (r"net/ofi/", {"remove_leftovers": "remove_stale_files", "leftover_role": "stale_files_role",
                   "Leftover": "StaleFiles"}),
    (None, {
        "Leftover": "Unconsumed", "leftovers": "unconsumed", "leftovers_left_out": "unconsumed_left_out",
        "LeftoversAreMeant": "UnconsumedIsMeant",
        "leftovers_are_reported_with_their_sender": "unconsumed_notifications_are_reported_with_their_sender",
        "leftovers_are_listed_up_to_a_number_and_counted_beyond":
            "unconsumed_notifications_are_listed_up_to_a_number_and_counted_beyond",
    }),
    # failed runs
    (r"rma/", {"Evidence": "FailedRunState", "evidence": "failed_state",
               "Story": "FaultText", "story": "fault_text"}),
    # words of several meanings
    (r"src/rma/", {
        "Place": "GlobalAddress", "Places": "GlobalAddresses", "places_": "addresses_",
    }),
    (r"rma/.*(places|global_addresses)\.", {"place": "global"}),
    (r"rma/.*user_windows", {"place": "global_offset"}),
    (r"src/rma/(?!.*(delivery|diagnosis))", {"place_of": "address_of", "place": "address"}),
    (r"", {
        "PlaceHook": "HostHook", "install_places": "install_host_hook", "places_installed": "host_hook_installed",
        "tell_place": "call_host_hook", "place_hook": "host_hook", "AtPlace": "AtHostHook",
    }),
    (r"rma/.*host_(endpoint|windows)", {"settled": "lasting"}),
    (r"rma/", {"settled": "completed", "unsettled": "incomplete"}),
    (r"rma/", {
        "settle_all": "drain_all", "settled_": "drained_", "settle_world": "reset_world",
        "come_to_rest": "quiesce", "at_rest": "is_quiescent", "resting_": "sleeping_",
        "raise_at_rest": "raise_between_runs", "patience_at_rest": "quiesce_timeout",
    }),
    (r"device/", {"come_to_rest": "quiesce"}),
    (r"tests/net/channel", {"settle": "drain"}),
    (r"world/(door|acceptor)", {"settle": "mark_answered"}),
    (r"src/copy/", {"Lane": "CopyStream", "lane": "copy_stream", "lane_": "owner_", "lanes": "streams",
                    "lane_of": "stream_for", "in_lane": "in_stream"}),
    (r"tests/copy/", {"CopyLane": "CopyStream"}),
    (r"src/pipeline/", {"Lane": "LegExecutor", "lane": "executor", "lanes_": "executors_"}),
    (r"apps/common/tests/blas", {"lanes": "queues", "lane": "queue"}),
    (r"net/ofi/", {"data_apart": "separate_data", "apart": "separate"}),
    (r"device/memory_map|src/device", {"apart": "separate"}),
    (r"apps/gemm/executor", {"Part": "BlockPart"}),
    (r"compat/shared_memory", {"Parts": "Pool"}),
    (None, {"KindTraits": "DeviceTraits", "SpecOfKind": "SpecOf"}),
    # deadlines
    (r"tests/mpi/misuse", {"Patience": "StartDeadline"}),
    (None, {"Patience": "Deadline", "patience": "timeout", "patience_": "timeout_",
            "patience_times": "timeout_factor", "PATIENCE": "TIMEOUT"}),
]

# --- parts of names, where no rule above fits -------------------------------------------------
SNAKE = [
    (r"world/|tests/rma/jobs", {"letters": "texts"}),
    (None, {
        "letter": "command", "letters": "commands", "mailbox": "command_queue", "parcel": "message",
        "parcels": "messages", "council": "detector", "gang": "launch", "gangs": "launches",
        "crew": "resources", "desk": "server", "courier": "progress_thread", "wish": "request",
        "wishes": "requests", "stranger": "unauthenticated_peer", "strangers": "unauthenticated_peers",
        "glance": "poll_fast", "leftover": "unconsumed", "leftovers": "unconsumed",
        "evidence": "failed_state", "patience": "timeout",
    }),
]
CAMEL = [
    (None, {
        "Letter": "Command", "Letters": "Commands", "Mailbox": "CommandQueue", "Parcel": "ProxyMessage",
        "Parcels": "ProxyMessages", "Council": "TerminationDetector", "Gang": "Launch",
        "Crew": "LaunchResources", "Desk": "CopyServer", "Courier": "ProgressThread", "Wish": "CopyRequest",
        "Stranger": "UnauthenticatedPeer", "Strangers": "UnauthenticatedPeers", "Leftover": "Unconsumed",
        "Leftovers": "Unconsumed", "Evidence": "FailedRunState", "Patience": "Deadline",
    }),
]

# --- strings that stay: names of windows in tests, single letters ----------------------------
STRINGS_KEEP = [
    (r"apps/|tools/", r"letter"),
]

# --- prose: (path, pattern, words); patterns ignore case, a space is any white space -----------
NOT_LETTER = r"^(?!apps/gemm/options|src/compat/dcuda_options|apps/launch)"
WATCH = r"rma/.*(watch|deadlock|reports|diagnosis|council|termination)"
PHRASES: list[tuple[str | None, str, str]] = [
    (r"apps/launch", r"the letter that", "the character that"),
    # commands
    (r"world/mpi|docs/|^README|CHANGELOG", r"MPI carries letters", "MPI carries short texts"),
    (r"docs/", r"Letters, not an `MPI_Bcast`", "Point-to-point messages, not an `MPI_Bcast`"),
    (r"world/mpi", r"(whoever waits for) its letter", r"\1 its text"),
    (r"world/mpi", r"a letter may be", "a text may be"),
    (NOT_LETTER, r"opens no letters", "carries out no commands"),
    (NOT_LETTER, r"open no letters", "carry out no commands"),
    (NOT_LETTER, r"open letters", "carry out commands"),
    (r"rma/.*(command_queue|mailbox)", r"may be opened later than now", "may be carried out later than now"),
    (r"rma/", r"use the places again once it is told", "use the slots again once it is told"),
    (r"rma/.*(proxy_request|post)", r"`post` says nothing", "`request` says nothing"),
    (r"tests/rma/cpu_only/(parcel|proxy_message)", r"what a message from another proxy may hold: a parcel",
     "what a channel's message from another proxy may hold: a proxy's message"),
    (None, r"all have come to rest", "all are quiescent"),
    (None, r"known to be settled", "known to be completed"),
    (None, r"which has come to nothing", "which has failed"),
    (NOT_LETTER, r"(ranks?) opens? letters", r"\1 carry out commands"),
    (NOT_LETTER, r"which ranks open when they wait", "which ranks carry out when they wait"),
    (NOT_LETTER, r"left letters half opened", "left commands half carried out"),
    (NOT_LETTER, r"letters that nobody has opened yet", "commands that nobody has carried out yet"),
    (NOT_LETTER, r"a letter that no rank has opened", "a command that no rank has carried out"),
    (NOT_LETTER, r"a letter with bytes that may not have been opened", "a command with bytes that may not have been carried out"),
    (NOT_LETTER, r"letters are opened", "commands are carried out"),
    (NOT_LETTER, r"opens letters", "carries out commands"),
    (NOT_LETTER, r"have something in their mailbox", "have commands in their queue"),
    (NOT_LETTER, r"is the letter's", "is the command's"),
    (NOT_LETTER, r"look into in a run with letters", "poll in a run with commands"),
    (NOT_LETTER, r"(else|by|comes?) by letters?", r"\1 by commands"),
    (NOT_LETTER, r"the proxy writes letters", "the proxy writes commands"),
    (NOT_LETTER, r"mailboxes", "command queues"),
    (r"rma/", r"what no rank had opened was carried out", "commands that no rank had carried out the host has"),
    (r"rma/", r"what no rank has opened belongs", "commands that no rank has carried out belong"),
    (r"rma/", r"that opens it acquires it", "that carries it out acquires it"),
    # the proxy
    (None, r"bare counts", "packed signals"),
    (None, r"bare count", "packed signal"),
    (None, r"of other process(?:es)? as parcels", "of other processes as messages"),
    (None, r"exchanges and posts", "exchanges and messages"),
    # termination
    (None, r"the \*council\*", "the *termination detector*"),
    (None, r"process 0 has the chair", "process 0 is the root"),
    (None, r"the chair's questions", "the root's questions"),
    (None, r"the chair:", "the root:"),
    (None, r"the council decides", "the termination detector decides"),
    (None, r"the council sits", "the termination detector polls"),
    (None, r"of the council, for which", "of the termination detector, for which"),
    # launches
    (None, r"one gang for all CPU devices of a launch", "one launch for all CPU devices of a run"),
    (None, r"a gang on GPUs makes one launch", "a cooperative launch on GPUs makes one CUDA launch"),
    (None, r"Grids of a gang that lie side by side on one physical device: on a GPU, one launch", "Grids of a launch that lie side by side on one physical device: on a GPU, one kernel launch"),
    (None, r"(grids of) a gang make one launch", r"\1 a cooperative launch make one kernel launch"),
    (None, r"what one GPU runs of a gang, in one launch", "what one GPU runs of a cooperative launch, in one kernel launch"),
    (None, r"how a gang ended", "how a launch ended"),
    (None, r"a gang with its grids", "a launch with its grids"),
    (None, r"when no rank of a gang can go on", "when no rank of a launch can go on"),
    (None, r"the gang makes all for itself", "the launch makes all for itself"),
    (None, r"starts one gang for each kind of device", "makes one cooperative launch for each kind of device"),
    (None, r"a gang has one kernel a device", "a cooperative launch has one kernel a device"),
    (None, r"each process launches its gang", "each process makes its cooperative launch"),
    (None, r"Gangs: all ranks at once", "Cooperative launches: all ranks at once"),
    (None, r"run, gang \|", "run, cooperative launch |"),
    (None, r"outlives the gangs that are launched with it", "outlives the launches that are made with it"),
    (None, r"gangs that are launched of it", "launches that are made of it"),
    (None, r"one gang has it at a time, from its launch until", "one launch has it at a time, from its start until"),
    (None, r"a \*crew\* for each kind of device keeps", "*launch resources* for each kind of device keep"),
    (None, r"many of them with one crew", "many of them with the same launch resources"),
    (WATCH, r"from another crew", "from another launch"),
    (WATCH, r"none of the crew's ranks", "none of the launch's ranks"),
    (WATCH, r"each crew|every crew", "each launch"),
    (WATCH, r"crews", "launches"),
    (WATCH, r"crew", "launch"),
    # copies
    (None, r"the thread that gets on with desks", "the progress thread of the copy servers"),
    (None, r"a desk must have this in the place of a network engine", "a copy server must have this instead of a network engine"),
    (None, r"the courier's thread", "the progress thread"),
    (None, r"(this|the) courier", r"\1 progress thread"),
    (None, r"without a wish, the processes", "by default, the processes"),
    (None, r"nodes by wish", "requested nodes"),
    (None, r"the number is that of a stranger in", "the number is that of an unrelated process in"),
    (None, r"may be a stranger's by now", "may be another process's by now"),
    (None, r"a `Gate` in shared memory sees to it that nobody", "Access epochs in shared memory ensure that nobody"),
    # processes
    (None, r"a process that came to the door is gone", "a process that connected is gone"),
    (None, r"at the door of a job", "at the acceptor of a job"),
    (None, r"what both sides of the door know", "what both sides of the acceptor know"),
    (None, r"told by their doors", "told by the names of their sockets"),
    (None, r"with one stranger", "with one unauthenticated peer"),
    (None, r"whether it may be a stranger who said this", "whether an unauthenticated peer may have said this"),
    (None, r"how strangers become processes of a job", "how unauthenticated peers become processes of a job"),
    # glance, leftovers, stories
    (None, r"leftovers of this run", "unconsumed notifications of this run"),
    (None, r"one leftover", "one unconsumed notification"),
    (r"net/", r"leftovers?", "stale files"),
    (r"apps/launch|cmake", r"(what removes|removes) leftovers", r"\1 stale files"),
    (r"tests/rma/cpu_only/delivery", r"stories", "scenarios"),
    # idioms that go with the old words
    (None, r"a run that came to nothing", "a run that failed"),
    (None, r"the run has come to nothing", "the run has failed"),
    (None, r"a run has come to nothing", "a run has failed"),
    (None, r"where the run came to nothing", "where the run failed"),
    (None, r"with places in rings taken", "with slots of rings taken"),
    (None, r"(numbers|of) of places and letters", r"\1 of slots and commands"),
    (None, r"places and letters", "slots and commands"),
    (None, r"a place or a letter is known by its number", "a slot or a command is known by its number"),
    (r"rma/.*(proxy|life|watch|run)", r"comes? to rest", "quiesces"),
    (None, r"is at rest", "is quiescent"),
    (None, r"patience has ended", "the deadline has passed"),
    (None, r"a shorter patience", "a shorter deadline"),
]
NOUNS: list[tuple[str | None, str, str]] = [
    (NOT_LETTER, r"letters('?)", r"commands\1"),
    (NOT_LETTER, r"letter('s)?", r"command\1"),
    (None, r"mailbox('s)?", r"command queue\1"),
    (None, r"parcels('?)", r"messages\1"),
    (None, r"parcel('s)?", r"message\1"),
    (r"world/|copy/job|pipeline|council|termination", r"posts(?! (?:buffers|it))", "messages"),
    (r"include/meshpost/rma|src/rma", r"posts", "requests"),
    (None, r"council('s)?", r"termination detector\1"),
    (None, r"chair('s)?", r"root\1"),
    (None, r"gangs", "launches"),
    (None, r"gang('s)?", r"launch\1"),
    (None, r"crews", "launch resources"),
    (None, r"crew's", "launch resources'"),
    (None, r"crew", "launch resources"),
    (None, r"desks", "copy servers"),
    (None, r"desk('s)?", r"copy server\1"),
    (None, r"courier('s)?", r"progress thread\1"),
    (None, r"wishes", "requests"),
    (None, r"wish", "request"),
    (None, r"doors", "acceptors"),
    (None, r"door('s)?", r"acceptor\1"),
    (None, r"strangers", "unauthenticated peers"),
    (None, r"stranger('s)?", r"unauthenticated peer\1"),
    (r"litmus", r"glance", "poll_fast"),
    (None, r"glance", "fast-path poll"),
    (r"copy/|docs/", r"gate('s)?", r"access epochs\1"),
    (None, r"leftovers", "unconsumed notifications"),
    (None, r"leftover", "unconsumed notification"),
    (None, r"evidence", "state of the failed run"),
    (r"rma/", r"story", "fault text"),
    (None, r"patience", "timeout"),
]

# --- what the report looks for: (word, instead, paths where it is right) ----------------------
RETIRED = [
    ("letter", "command", None), ("letters", "commands", None),
    ("mailbox", "command queue", None), ("mailboxes", "command queues", None),
    ("parcel", "message", None), ("parcels", "messages", None),
    ("posts", "requests, messages", r"net/ofi/|net/mpi/|pipeline/board"),
    ("council", "termination detector", None), ("chair", "root", None),
    ("gang", "launch", None), ("gangs", "launches", None),
    ("crew", "launch resources", None), ("crews", "launch resources", None),
    ("desk", "copy server", None), ("desks", "copy servers", None),
    ("courier", "progress thread", None), ("wish", "request", None), ("wishes", "requests", None),
    ("door", "acceptor", None), ("doors", "acceptors", None),
    ("stranger", "unauthenticated peer", None), ("strangers", "unauthenticated peers", None),
    ("glance", "fast-path poll", None), ("gate", "access epochs", None),
    ("leftover", "unconsumed", None), ("leftovers", "unconsumed", None),
    ("evidence", "failed run state", None), ("story", "fault text", None), ("stories", "fault texts", None),
    ("patience", "deadline, timeout", None),
]
